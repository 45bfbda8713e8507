"""Filter, score, pick: where tasks of a class can go, and which nodes are best.

`Placement` is what actions use. A class keeps a column of verdicts and scores over all nodes, refreshed only
where nodes changed; a gang of equal tasks is placed in one step that equals placing them one by one.
"""
