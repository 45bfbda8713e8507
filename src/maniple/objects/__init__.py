"""Kubernetes objects as typed, frozen structs: core kinds, the Volcano and KAI resources, quantities, selectors.

This room only parses and validates. Everything above it builds on what `load` lets through, and may rely on it.
"""
