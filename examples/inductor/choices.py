"""Choices of Inductor that are asked before a loop is fused with one that reads its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fusion_cost_model import Estimate, OnTarget, Policy, Problem
from problems import calls_between, problem_of
from torch._inductor import config
from torch._inductor.choices import InductorChoices
from torch._inductor.compile_fx import compile_fx
from torch._inductor.scheduler import BaseSchedulerNode, Scheduler, SchedulerNode
from torch._inductor.virtualized import V
from torch.fx import Node


@dataclass(frozen=True)
class Question:
    """Whether two kernels shall be one: the ops that it would have, as PyTorch calls them."""

    ops: tuple[str, ...]
    #: `None` where the cost model's vocabulary has no such chain.
    problem: Problem | None

    @staticmethod
    def of(nodes: Iterable[BaseSchedulerNode], among: Iterable[BaseSchedulerNode]) -> Question:
        """About some nodes among all of a graph."""
        parts = parts_of(nodes)
        own = results(parts)
        others = results(parts_of(among).difference(parts)) - own
        calls = calls_between(own, others)
        return Question(tuple(call.name for call in calls), problem_of(calls))

    @property
    def is_within_an_op(self) -> bool:
        """Whether both kernels are parts of one op, which the cost model does not take apart."""
        return len(self.ops) == 1


def parts_of(nodes: Iterable[BaseSchedulerNode]) -> set[BaseSchedulerNode]:
    return {part for node in nodes for part in node.get_nodes()}


def results(parts: Iterable[BaseSchedulerNode]) -> set[Node]:
    """What each of them computes: the last node of PyTorch's graph that it comes from."""
    origins = [part.node.get_origins() for part in parts if part.node is not None]
    return {max(of_part) for of_part in origins if of_part}


class Asking(InductorChoices):
    """Inductor's choices, with an answer of its own to each question.

    An `answer` of None leaves the choice to Inductor, which fuses.
    """

    def __init__(self, answer: Callable[[Question], bool | None]) -> None:
        self.answer = answer
        #: What it was asked, and what it answered.
        self.answers: dict[Question, bool | None] = {}
        #: What was made: the ops of each kernel that Inductor generated.
        self.kernels: list[Question] = []

    def can_fuse_vertical(
        self,
        scheduler: Scheduler,
        node1: BaseSchedulerNode,
        node2: BaseSchedulerNode,
        shared_data_score: int,
    ) -> bool:
        answer = None
        # A mean and its variance are one node of PyTorch's graph, and two loops.
        if len(results(parts_of([node1, node2]))) > 1:
            question = Question.of([node1, node2], scheduler.nodes)
            answer = self.answers[question] = self.answer(question)
        if answer is None:
            return super().can_fuse_vertical(scheduler, node1, node2, shared_data_score)
        return answer

    def see(self, nodes: list[BaseSchedulerNode]) -> list[BaseSchedulerNode]:
        """Keeps what all kernels are in the end."""
        generated = [node for node in nodes if any(is_loop(part) for part in node.get_nodes())]
        self.kernels += [Question.of([node], nodes) for node in generated]
        return nodes

    def uuid(self) -> None:
        return None  # What was compiled with it is kept in no cache.


def is_loop(part: BaseSchedulerNode) -> bool:
    """Whether Inductor generates code for it; all else is a call of a library."""
    return isinstance(part, SchedulerNode)


def as_inductor(question: Question) -> None:
    """What Inductor does by itself."""


def never(question: Question) -> bool:
    """No loop is fused with one that reads its result."""
    return False


def op_by_op(question: Question) -> bool | None:
    """Ops are kept apart; the parts of one are not."""
    return True if question.is_within_an_op else False


def by_cost(on_target: OnTarget, policy: Policy) -> Callable[[Question], bool | None]:
    """What a calibration of Inductor's kernels says; Inductor chooses where it says nothing."""

    def answer(question: Question) -> bool | None:
        if question.is_within_an_op or question.problem is None:
            return None
        if known(on_target, question.problem) is None:
            return None
        return on_target.decide(question.problem, policy).should_fuse

    return answer


def backend(choices: Asking) -> Callable[..., object]:
    """A backend for `torch.compile`: Inductor with these choices, also when it compiles again."""

    def compile_with(graph: object, inputs: object) -> object:
        see = config.patch(_post_fusion_custom_pass=choices.see)
        with V.set_choices_handler(choices), see:
            return compile_fx(graph, inputs)

    return compile_with


def known(on_target: OnTarget, problem: Problem) -> Estimate | None:
    """What the calibration knows about a problem. A roofline says what a machine could do, and nothing
    of what Inductor does."""
    estimate = on_target.estimate(problem)
    return None if estimate.evidence in ("roofline", "unknown") else estimate


def saved_ms(estimate: Estimate | None) -> float | None:
    """What one kernel is expected to save."""
    if estimate is None or estimate.unfused_ms is None or estimate.fused_ms is None:
        return None
    return estimate.unfused_ms.value - estimate.fused_ms.value
