"""The scale of each of KAI's node scores.

The bands lie so far apart that a lower one only breaks ties of the higher ones.
"""

DENSITY = 9.0
RESOURCE_TYPE = 10.0
AVAILABILITY = 100.0
GPU_SHARING = 1_000.0
TOPOLOGY = 10_000.0
KUBERNETES = 100_000.0
NOMINATED_NODE = 1_000_000.0
