"""What kernel fusion really gains on a machine, for graph partitioners.

Objects are immutable, and any thread may read them. Times are in milliseconds. A call that fails
raises an `Error` that says what was wrong, where, and what to do. An argument of another type, a
threshold that is no number or a number that does not fit raises Python's own `TypeError`,
`ValueError` or `OverflowError`.
"""

import os
from collections.abc import Sequence
from typing import Literal, final

__all__ = [
    "Alternative",
    "CannotReadError",
    "Coverage",
    "Covered",
    "Decision",
    "Error",
    "Estimate",
    "FusionCostModel",
    "GraphNode",
    "HardwareMismatchError",
    "Interval",
    "InvalidFileError",
    "InvalidQuestionError",
    "InvalidSizesError",
    "NextPoint",
    "NodeOps",
    "NotOneKernelError",
    "OnTarget",
    "Partition",
    "Policy",
    "Problem",
    "Segment",
    "Target",
    "UndecidedError",
    "UnknownNameError",
    "__version__",
]

__version__: str

_Backend = Literal["cpu", "cuda", "hip"]
_Clock = Literal["host", "device", "launch-inclusive"]
_CacheState = Literal["warm", "cold"]
_Implementation = Literal["native", "vendor"]
_DType = Literal["f64", "f32", "tf32", "bf16", "f16", "f8", "i8"]
_WhenUnknown = Literal["conservative", "optimistic", "roofline", "error"]
_Reason = Literal["faster", "slower", "too close", "unknown"]
_Evidence = Literal[
    "measured",
    "composed at size",
    "interpolated",
    "composed between sizes",
    "extrapolated",
    "roofline",
    "unknown",
]

@final
class FusionCostModel:
    """What a calibration file says, ready to be asked."""

    @staticmethod
    def load(
        path: str | os.PathLike[str], *, expecting_hardware: str | None = None
    ) -> FusionCostModel:
        """Loads a calibration file, which must be of the machine with that id, name or alias.

        Other threads of Python run while it loads.
        """

    @staticmethod
    def from_text(text: str, *, expecting_hardware: str | None = None) -> FusionCostModel:
        """Reads the contents of a calibration file. See `load`."""

    @property
    def targets(self) -> list[Target]:
        """The targets that the file has records for, in a fixed order."""

    def on(self, target: Target, *, state: int | None = None) -> OnTarget:
        """Binds a target, and a state of the machine by its number in the file.

        A target that the file has no records for can be bound too, and answers "unknown". A state
        that it does not have raises `InvalidQuestionError`.
        """

@final
class Target:
    """Where a problem would run, and how its time is measured. A record must match all of it.

    For a CPU the clock is the host's. A GPU has two, so one must be named.
    """

    def __new__(
        cls,
        backend: _Backend | str,
        *,
        threads: int = 1,
        clock: _Clock | str | None = None,
        cache_state: _CacheState | str = "warm",
        implementation: _Implementation | str = "native",
    ) -> Target: ...
    @property
    def backend(self) -> _Backend: ...
    @property
    def threads(self) -> int: ...
    @property
    def clock(self) -> _Clock: ...
    @property
    def cache_state(self) -> _CacheState: ...
    @property
    def implementation(self) -> _Implementation | str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Problem:
    """A chain of ops, the dtype of its tensors, and its sizes.

    `Problem("linear_bias_relu/f32/m128.k256.n512")` reads its text form, which `str` returns. A chain
    is ops joined with `+`, or the name of a pattern; names of frameworks are known, also for dtypes.
    """

    def __new__(cls, text: str) -> Problem: ...
    @staticmethod
    def rows(chain: str, dtype: _DType | str, *, m: int, n: int) -> Problem:
        """Pointwise and row ops on a matrix [m, n]."""

    @staticmethod
    def linear(chain: str, dtype: _DType | str, *, m: int, k: int, n: int) -> Problem:
        """One linear op, X [m, k] and W [k, n], and what follows it."""

    @staticmethod
    def mlp(chain: str, dtype: _DType | str, *, m: int, k: int, n: int, o: int) -> Problem:
        """Two linear ops, X [m, k], W1 [k, n] and W2 [n, o], and what follows each."""

    @staticmethod
    def conv(
        chain: str,
        dtype: _DType | str,
        *,
        n: int,
        c: int,
        h: int,
        w: int,
        k: int,
        r: int,
        s: int,
        stride: int = 1,
        pad: int = 0,
        groups: int = 1,
    ) -> Problem:
        """A convolution, by the letters of cuDNN, and the pointwise ops that follow it."""

    @staticmethod
    def conv_pool(
        chain: str,
        dtype: _DType | str,
        *,
        n: int,
        c: int,
        h: int,
        w: int,
        k: int,
        r: int,
        s: int,
        pool: int,
        stride: int = 1,
        pad: int = 0,
        groups: int = 1,
        pool_stride: int | None = None,
        pool_pad: int = 0,
    ) -> Problem:
        """A convolution with a max-pool among the ops that follow it."""

    @staticmethod
    def attention(
        chain: str,
        dtype: _DType | str,
        *,
        b: int,
        h: int,
        q: int,
        d: int,
        kv: int | None = None,
        kvh: int | None = None,
        causal: bool = False,
    ) -> Problem:
        """Scaled dot-product attention: batch, heads, queries, features of a head, keys, and heads of
        keys. With `causal`, no query sees a key after its own, and the last query is at the last
        key."""

    @staticmethod
    def multihead_linear(
        chain: str,
        dtype: _DType | str,
        *,
        b: int,
        h: int,
        q: int,
        d: int,
        features: int,
        kv: int | None = None,
        kvh: int | None = None,
        causal: bool = False,
    ) -> Problem:
        """Attention, and a linear op with `features` outputs on the joined heads."""

    def join(self, next: Problem) -> Problem:
        """One problem of this one and a neighbour that reads what this one writes."""

    @property
    def ops(self) -> list[str]: ...
    @property
    def dtype(self) -> _DType: ...
    @property
    def sizes(self) -> dict[str, int]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Policy:
    """How to decide: the speedup from which fusing is worth it, and what to assume when nothing is
    known, for which there is no default."""

    def __new__(cls, when_unknown: _WhenUnknown | str, *, threshold: float = 1.0) -> Policy: ...
    @property
    def when_unknown(self) -> _WhenUnknown: ...
    @property
    def threshold(self) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class OnTarget:
    """What a model knows about one target."""

    @property
    def target(self) -> Target: ...
    @property
    def state(self) -> int | None: ...
    def estimate(self, problem: Problem) -> Estimate:
        """What is known about a problem, from the most trusted evidence that there is."""

    def decide(self, problem: Problem, policy: Policy) -> Decision:
        """Whether to make one kernel of a problem."""

    def should_fuse(self, first: Problem, second: Problem, policy: Policy) -> bool:
        """Whether to make one kernel of two neighbours."""

    def partition(self, problem: Problem, policy: Policy) -> Partition:
        """The best split of a chain into kernels."""

    def partition_graph(self, nodes: Sequence[GraphNode], policy: Policy) -> Partition:
        """The best split of a graph into kernels. A node reads only nodes before it."""

    def coverage(self, problems: Sequence[Problem], policy: Policy) -> Coverage:
        """What is known of some problems, which decisions about them are unsafe, and the fewest
        problems to measure that make them safe. One that is asked about several times, as those of
        a model's layers are, counts as often."""

@final
class Interval:
    """A value with its 95 % interval."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Estimate:
    """What is known about a problem on a target. Unknown values are None."""

    @property
    def evidence(self) -> _Evidence:
        """Where the answer comes from."""

    @property
    def unfused_ms(self) -> Interval | None:
        """The time of the unfused kernels together."""

    @property
    def fused_ms(self) -> Interval | None:
        """The time of the fused kernel."""

    @property
    def speedup(self) -> Interval | None:
        """Unfused time over fused time."""

    @property
    def octaves_beyond(self) -> float:
        """How far beyond the measured sizes the problem lies, if it was extrapolated; else 0."""

    @property
    def nearest(self) -> list[Problem]:
        """The problems of the records with the most weight in the answer."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class Decision:
    """Whether to fuse, and what that rests on."""

    @property
    def should_fuse(self) -> bool: ...
    @property
    def reason(self) -> _Reason:
        """Where the interval of the speedup lies relative to the threshold."""

    @property
    def estimate(self) -> Estimate: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class GraphNode:
    """Ops that follow each other, and the numbers of the nodes that they read.

    The first op transforms the result of node `input`; None means a tensor from outside. Weights
    and other constants are not nodes. A node that no other reads need not be an output.
    """

    def __new__(
        cls,
        problem: Problem,
        *,
        input: int | None = None,
        operands: Sequence[int] = ...,
        is_output: bool = False,
    ) -> GraphNode: ...
    @property
    def problem(self) -> Problem: ...
    @property
    def input(self) -> int | None: ...
    @property
    def operands(self) -> list[int]: ...
    @property
    def is_output(self) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class NodeOps:
    """Some of a node's ops: from `begin` to before `end`."""

    @property
    def node(self) -> int: ...
    @property
    def begin(self) -> int: ...
    @property
    def end(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Segment:
    """Ops in one kernel, and what that costs."""

    @property
    def parts(self) -> list[NodeOps]:
        """The ops, in the order in which they run."""

    @property
    def problem(self) -> Problem | None:
        """The ops as one problem; None for a single op that cannot be asked alone."""

    @property
    def estimate(self) -> Estimate: ...
    @property
    def saved_ms(self) -> Interval:
        """The time that one kernel saves: 0 for a single op, and without evidence."""

    @property
    def saved_by_next_ms(self) -> Interval | None:
        """How much more a kernel would save that includes the next op too."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class Alternative:
    """Another split, and how much longer it takes."""

    @property
    def segments(self) -> list[list[NodeOps]]: ...
    @property
    def slower_by_ms(self) -> Interval: ...
    @property
    def peak_bytes(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Partition:
    """The best split into kernels."""

    @property
    def segments(self) -> list[Segment]:
        """Its kernels, in the order in which they run."""

    @property
    def total_ms(self) -> Interval | None:
        """The sum of their times; None if that of a segment is unknown."""

    @property
    def saved_ms(self) -> Interval:
        """The time that it saves over one kernel per op."""

    @property
    def peak_bytes(self) -> int:
        """The most bytes that are alive at once, without weights and other constants."""

    @property
    def runner_up(self) -> Alternative | None:
        """The second best split; None where there is only one."""

    @property
    def never(self) -> Alternative:
        """One kernel per op."""

    @property
    def always(self) -> Alternative:
        """As few kernels as possible, of those whose cost is known."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class Covered:
    """What is known of one problem."""

    @property
    def problem(self) -> Problem: ...
    @property
    def count(self) -> int:
        """How often it was asked about."""

    @property
    def estimate(self) -> Estimate: ...
    @property
    def expected_regret_ms(self) -> float | None:
        """The time that deciding by this estimate is expected to lose, over all its occurrences: 0
        for a single op, about which nothing is decided; None where nothing is known."""

    @property
    def is_safe(self) -> bool:
        """Whether the policy decides by such evidence, and is expected to lose at most 0.5 % of the
        fused time."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class NextPoint:
    """A problem to measure."""

    @property
    def problem(self) -> Problem: ...
    @property
    def lowers_regret_by_ms(self) -> float:
        """By how much it lowers the expected regret of all decisions, when those before it are
        measured."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class Coverage:
    """What is known of some problems, and what to measure next."""

    @property
    def questions(self) -> list[Covered]:
        """Each problem once, in the order in which they were asked about."""

    @property
    def to_measure(self) -> list[NextPoint]:
        """The fewest problems that, when they are measured, let every decision be safe that can be:
        first what lowers the expected regret most."""

    @property
    def known(self) -> int:
        """How many questions are answered by measured kernels."""

    @property
    def decisions(self) -> int:
        """How many are more than a single op."""

    @property
    def safe_decisions(self) -> int:
        """How many of the decisions are safe."""

    @property
    def expected_regret_ms(self) -> float:
        """The expected regret of all decisions together, as far as it is known."""

    def __eq__(self, other: object, /) -> bool: ...

class Error(Exception):
    """Anything that this module raises."""

class InvalidQuestionError(Error):
    """A question is wrong: a name, a chain, sizes, the text of a problem, or the order of nodes."""

class UnknownNameError(InvalidQuestionError):
    """Nothing has a name that was given; the message suggests the nearest ones."""

class NotOneKernelError(InvalidQuestionError):
    """The ops, or the two neighbours, cannot be one kernel."""

class InvalidSizesError(InvalidQuestionError):
    """Sizes do not belong to their chain, or no tensor can have them."""

class CannotReadError(Error):
    """A file cannot be read."""

class InvalidFileError(Error):
    """A file is damaged, incomplete, of another kind or version, or has values that cannot be."""

class HardwareMismatchError(Error):
    """A calibration is of another machine than was expected."""

class UndecidedError(Error):
    """Nothing is known, and the policy is not to guess."""
