"""Splits a graph of ops into the kernels that take the least time, as `examples/partitioner.rs`.

Usage: partitioner.py [CALIBRATION]
"""

import sys

from fusion_cost_model import FusionCostModel, GraphNode, Policy, Problem, Target


def main() -> None:
    file = sys.argv[1] if len(sys.argv) > 1 else "tests/data/example.toml"
    on_cpu = FusionCostModel.load(file).on(Target("cpu", threads=2))
    # Two linear layers, the second with a residual connection from outside.
    ops = [
        Problem.linear("linear", "f32", m=4096, k=64, n=256),
        Problem.rows("bias", "f32", m=4096, n=256),
        Problem.rows("relu", "f32", m=4096, n=256),
        Problem.linear("linear", "f32", m=4096, k=256, n=1024),
        Problem.rows("add", "f32", m=4096, n=1024),
        Problem.rows("relu", "f32", m=4096, n=1024),
    ]
    graph = [GraphNode(op, input=i - 1 if i > 0 else None) for i, op in enumerate(ops)]
    # Fuse whatever is faster, and keep apart what nothing is known about.
    best = on_cpu.partition_graph(graph, Policy("conservative"))
    for segment in best.segments:
        if segment.problem is not None:
            evidence, saved = segment.estimate.evidence, segment.saved_ms.value
            print(f"{segment.problem}: {evidence}, saves {saved:.3f} ms")
    print(f"{best.saved_ms.value:.3f} ms less than one kernel per op")


if __name__ == "__main__":
    main()
