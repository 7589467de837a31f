"""Partial orders of many agents: cycles and reachability, linear in what was stated.

The graph of one agent has a node per mentioned item and one auxiliary node between neighboring levels
(items of level l → auxiliary node → items of level l + 1), so that levels cost as many edges as they have
items. Where the rest is below, a last auxiliary node leads to mentioned items outside the levels. Items are
renumbered per agent by means of stamps; nothing of the size of the item set is cleared between agents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.kernels.jit import kernel
from permix.kernels.pairwise_counts import Array, PreferenceArrays


class Graph(NamedTuple):
    """Room for the graph of one agent, reused from agent to agent."""

    stamp: Array  # per item: agent + 1 who mentioned it last
    local: Array  # per item: its node, valid where the stamp is current
    items: Array  # per node: its item
    start: Array  # out-edges of node u are targets[start[u]:start[u + 1]]
    targets: Array
    in_degree: Array
    order: Array  # topological order, as far as there is one
    cursor: Array


@kernel
def room_for_graphs(arrays: PreferenceArrays, n_items: int, first: int, last: int) -> Graph:
    """Allocate for the largest graph among agents first..last-1."""
    nodes = 1
    edges = 1
    for i in range(first, last):
        listed = arrays.level_indptr[i + 1] - arrays.level_indptr[i]
        pairs = arrays.pair_indptr[i + 1] - arrays.pair_indptr[i]
        mentioned = min(listed + 2 * pairs, n_items)
        nodes = max(nodes, mentioned + listed)
        edges = max(edges, mentioned + 2 * listed + pairs)
    return Graph(
        np.zeros(n_items, dtype=np.int64),
        np.empty(n_items, dtype=np.int32),
        np.empty(nodes, dtype=np.int32),
        np.empty(nodes + 1, dtype=np.int64),
        np.empty(edges, dtype=np.int32),
        np.empty(nodes, dtype=np.int32),
        np.empty(nodes, dtype=np.int32),
        np.empty(nodes, dtype=np.int64),
    )


@kernel
def _add_edge(graph: Graph, counting: bool, source: int, target: int) -> None:
    """Count an edge, or put it where the counts say."""
    if counting:
        graph.start[source + 1] += 1
        graph.in_degree[target] += 1
    else:
        graph.targets[graph.cursor[source]] = target
        graph.cursor[source] += 1


@kernel
def build_graph(arrays: PreferenceArrays, i: int, graph: Graph) -> tuple[int, int, int]:
    """Fill ``graph`` with agent i's statements; return the numbers of items, of listed items, of nodes."""
    stamp = i + 1
    level_from, level_to = arrays.level_indptr[i], arrays.level_indptr[i + 1]
    pair_from, pair_to = arrays.pair_indptr[i], arrays.pair_indptr[i + 1]
    n_mentioned = 0
    for p in range(level_from, level_to):
        item = arrays.level_items[p]
        graph.stamp[item] = stamp
        graph.local[item] = n_mentioned
        graph.items[n_mentioned] = item
        n_mentioned += 1
    n_listed = n_mentioned
    for p in range(pair_from, pair_to):
        for side in range(2):
            item = arrays.pairs[p, side]
            if graph.stamp[item] != stamp:
                graph.stamp[item] = stamp
                graph.local[item] = n_mentioned
                graph.items[n_mentioned] = item
                n_mentioned += 1
    n_between = 0
    if n_listed > 0:
        n_between = arrays.levels[level_to - 1]
        if arrays.rest_below[i] and n_mentioned > n_listed:
            n_between += 1
    n_nodes = n_mentioned + n_between
    rest = n_nodes - 1 if n_between > 0 and n_between == arrays.levels[level_to - 1] + 1 else -1

    for node in range(n_nodes):
        graph.start[node + 1] = 0
        graph.in_degree[node] = 0
    graph.start[0] = 0
    # Two rounds over the same edges: count, then place.
    for counting in (True, False):
        for node in range(n_listed):
            level = arrays.levels[level_from + node]
            if level < n_between:
                _add_edge(graph, counting, node, n_mentioned + level)
            if level > 0:
                _add_edge(graph, counting, n_mentioned + level - 1, node)
        if rest >= 0:
            for node in range(n_listed, n_mentioned):
                _add_edge(graph, counting, rest, node)
        for p in range(pair_from, pair_to):
            _add_edge(graph, counting, graph.local[arrays.pairs[p, 0]], graph.local[arrays.pairs[p, 1]])
        if counting:
            for node in range(n_nodes):
                graph.cursor[node] = graph.start[node]
                graph.start[node + 1] += graph.start[node]
    return n_mentioned, n_listed, n_nodes


@kernel
def sort_graph(graph: Graph, n_nodes: int) -> int:
    """Kahn's algorithm: topological order into ``graph.order``; return how many nodes it reached.

    Nodes that were not reached lie on a cycle or below one; their in-degree stays positive.
    """
    order, in_degree = graph.order, graph.in_degree
    reached = 0
    for node in range(n_nodes):
        if in_degree[node] == 0:
            order[reached] = node
            reached += 1
    done = 0
    while done < reached:
        node = order[done]
        done += 1
        for e in range(graph.start[node], graph.start[node + 1]):
            target = graph.targets[e]
            in_degree[target] -= 1
            if in_degree[target] == 0:
                order[reached] = target
                reached += 1
    return reached


@kernel
def consistent_agents(arrays: PreferenceArrays, n_items: int) -> Array:
    """Say of every agent whether the statements have no cycle."""
    n = len(arrays.pair_indptr) - 1
    consistent = np.ones(n, dtype=np.bool_)
    graph = room_for_graphs(arrays, n_items, 0, n)
    for i in range(n):
        if arrays.pair_indptr[i + 1] > arrays.pair_indptr[i]:  # levels alone cannot contradict
            _, _, n_nodes = build_graph(arrays, i, graph)
            consistent[i] = sort_graph(graph, n_nodes) == n_nodes
    return consistent


@kernel
def find_cycle(arrays: PreferenceArrays, i: int, n_items: int) -> Array:
    """Items of a short cycle of agent i, each better than the next and the last than the first.

    Empty where there is none.
    """
    graph = room_for_graphs(arrays, n_items, i, i + 1)
    n_mentioned, _, n_nodes = build_graph(arrays, i, graph)
    if sort_graph(graph, n_nodes) == n_nodes:
        return np.empty(0, dtype=np.int32)
    # Every node left has a predecessor that is left; walking backwards must come round.
    before = np.full(n_nodes, -1, dtype=np.int32)
    node = -1
    for u in range(n_nodes):
        if graph.in_degree[u] > 0:
            node = u
            for e in range(graph.start[u], graph.start[u + 1]):
                if graph.in_degree[graph.targets[e]] > 0:
                    before[graph.targets[e]] = u
    passed = np.zeros(n_nodes, dtype=np.bool_)
    while not passed[node]:
        passed[node] = True
        node = before[node]
    # Breadth first from a node on a cycle gives the shortest cycle through it.
    origin = node
    parent = np.full(n_nodes, -1, dtype=np.int32)
    queue = graph.order
    queue[0] = origin
    head, tail = 0, 1
    last = -1
    while last < 0:
        u = queue[head]
        head += 1
        for e in range(graph.start[u], graph.start[u + 1]):
            target = graph.targets[e]
            if target == origin:
                last = u
                break
            if graph.in_degree[target] > 0 and parent[target] < 0:
                parent[target] = u
                queue[tail] = target
                tail += 1
    path = np.empty(n_nodes, dtype=np.int32)
    length = 0
    node = last
    while True:
        if node < n_mentioned:
            path[length] = graph.items[node]
            length += 1
        if node == origin:
            break
        node = parent[node]
    return path[:length][::-1].copy()


@kernel
def closure_bits(graph: Graph, n_mentioned: int, n_nodes: int) -> Array:
    """Below each node, as bits over the mentioned items; the graph has been sorted without a cycle."""
    n_words = (n_mentioned + 63) // 64
    bits = np.zeros((n_nodes, n_words), dtype=np.uint64)
    for step in range(n_nodes - 1, -1, -1):
        node = graph.order[step]
        for e in range(graph.start[node], graph.start[node + 1]):
            target = graph.targets[e]
            for w in range(n_words):
                bits[node, w] |= bits[target, w]
            if target < n_mentioned:
                bits[node, target >> 6] |= np.uint64(1) << np.uint64(target & 63)
    return bits


@kernel
def closure_of(arrays: PreferenceArrays, i: int, n_items: int) -> tuple[Array, Array]:
    """Mentioned items of agent i and the matrix "row better than column" over them; no cycles allowed."""
    graph = room_for_graphs(arrays, n_items, i, i + 1)
    n_mentioned, _, n_nodes = build_graph(arrays, i, graph)
    sort_graph(graph, n_nodes)
    bits = closure_bits(graph, n_mentioned, n_nodes)
    better = np.empty((n_mentioned, n_mentioned), dtype=np.bool_)
    for a in range(n_mentioned):
        for b in range(n_mentioned):
            better[a, b] = (bits[a, b >> 6] >> np.uint64(b & 63)) & np.uint64(1) != 0
    return graph.items[:n_mentioned].copy(), better


@kernel
def implies(arrays: PreferenceArrays, i: int, better: int, worse: int, n_items: int) -> bool:
    """Say whether agent i's statements imply that one item is better than another."""
    if better == worse:
        return False
    graph = room_for_graphs(arrays, n_items, i, i + 1)
    _, n_listed, n_nodes = build_graph(arrays, i, graph)
    if graph.stamp[better] != i + 1:
        return False
    origin = graph.local[better]
    if graph.stamp[worse] != i + 1:  # never mentioned: below the listed items, or unknown
        return bool(arrays.rest_below[i]) and origin < n_listed
    goal = graph.local[worse]
    seen = np.zeros(n_nodes, dtype=np.bool_)
    stack = graph.order
    stack[0] = origin
    seen[origin] = True
    height = 1
    while height > 0:
        height -= 1
        node = stack[height]
        for e in range(graph.start[node], graph.start[node + 1]):
            target = graph.targets[e]
            if target == goal:
                return True
            if not seen[target]:
                seen[target] = True
                stack[height] = target
                height += 1
    return False
