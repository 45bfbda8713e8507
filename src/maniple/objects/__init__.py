"""Kubernetes objects as typed, frozen structs: core kinds, Volcano's and KAI's resources, quantities,
selectors.

This package only parses and validates. Every package above it may rely on what `load` lets through.
"""
