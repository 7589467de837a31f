"""The papers' own figures and tables, one script each, the paper's value beside ours.

``python -m benchmarks.reproduce`` lists them; ``python -m benchmarks.reproduce.lu_boutilier_fig3`` runs one.
"""
