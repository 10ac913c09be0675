"""The split of a graph of PyTorch by the cost model, as an allow-list for FX's partitioner.

    python3 allow_list.py --calibration inductor.calibration.toml --model bert [--small]

Inductor generates code for pointwise and row ops; a GEMM or a convolution is a call of a library. So
the ops between such calls are what can be split. An op is on the list if its kernel has another op in
it too.
"""

from __future__ import annotations

import argparse

import torch
from fusion_cost_model import FusionCostModel, GraphNode, OnTarget, Policy
from models import MODELS
from problems import Call, calls_of, problem_of, readers_of
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition
from torch.fx.passes.operator_support import OperatorSupportBase


def exported(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> GraphModule:
    """A graph of the ops that PyTorch was asked for."""
    return torch.export.export(model, inputs).module()


def kernels(module: GraphModule, on_target: OnTarget, policy: Policy) -> list[list[Call]]:
    """The kernels with more than one op in the best split."""
    found = [(call, problem_of([call])) for call in calls_of(module.graph)]
    calls = [(call, problem) for call, problem in found if problem is not None]
    number = {node: index for index, (call, _) in enumerate(calls) for node in call.nodes}
    nodes = []
    for index, (call, problem) in enumerate(calls):
        read = [number[one] for one in call.inputs if one in number]
        readers = {reader for node in call.nodes for reader in readers_of(node)} - set(call.nodes)
        is_output = any(reader not in number for reader in readers)
        # The first op transforms what the node before it writes, if it reads that.
        flows = index - 1 if index - 1 in read else read[0] if read else None
        operands = [one for one in read if one != flows]
        nodes.append(GraphNode(problem, input=flows, operands=operands, is_output=is_output))
    segments = on_target.partition_graph(nodes, policy).segments
    split = [[calls[part.node][0] for part in segment.parts] for segment in segments]
    return [kernel for kernel in split if len(kernel) > 1]


class AllowList(OperatorSupportBase):
    """Only the nodes that are named."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def is_node_supported(self, submodules: object, node: Node) -> bool:
        return node.name in self.names


def partitioned(module: GraphModule, split: list[list[Call]]) -> list[Partition]:
    """What the partitioner makes of the list. It joins neighbours that no other node is between."""
    names = {node.name for kernel in split for call in kernel for node in call.nodes}
    partitioner = CapabilityBasedPartitioner(module, AllowList(names))
    return partitioner.propose_partitions()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--calibration", required=True, metavar="FILE")
    arguments.add_argument("--model", choices=MODELS, required=True)
    arguments.add_argument("--small", action="store_true", help="a small variant of the model")
    given = arguments.parse_args()
    model = FusionCostModel.load(given.calibration)
    on_target = model.on(model.targets[0])
    module = exported(*MODELS[given.model](given.small))
    split = kernels(module, on_target, Policy("optimistic"))
    for partition in partitioned(module, split):
        print(" ".join(sorted(node.name for node in partition.nodes)))


if __name__ == "__main__":
    main()
