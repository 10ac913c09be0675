"""Ways to answer Inductor's questions, and a model that was compiled with one of them."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch
from choices import Asking, as_inductor, by_cost, known, never, op_by_op, saved_ms
from fusion_cost_model import FusionCostModel, OnTarget, Policy
from models import MODELS
from torch._inductor import config
from torch._inductor.utils import fresh_cache

# The last one needs a calibration.
STRATEGIES = ["default", "never", "op by op", "benchmark_fusion", "cost model"]


@dataclass(frozen=True)
class Compiled:
    """What came of compiling a model."""

    compile_s: float
    #: How many kernels Inductor generated, and how many of them have several ops for which the
    #: vocabulary has a name.
    kernels: int
    named: int
    #: What the latter are expected to save against what a veto leaves; None where it is not known.
    predicted_ms: float | None

    as_dict = asdict


def load(calibration: str) -> OnTarget:
    """The only target of a calibration of Inductor's kernels."""
    model = FusionCostModel.load(calibration)
    (target,) = model.targets
    return model.on(target)


def choices(strategy: str, on_target: OnTarget) -> Asking:
    answers = {
        "never": never,
        "op by op": op_by_op,
        "cost model": by_cost(on_target, Policy("optimistic")),
    }
    return Asking(answers.get(strategy, as_inductor))


def compile_model(
    model: str, small: bool, strategy: str, on_target: OnTarget
) -> tuple[Callable[[], torch.Tensor], Compiled]:
    """A model that was compiled, and proved to compute what it computes without a compiler.

    Inductor makes one object of `inductor_choices_class` and keeps it, so that a process has one
    strategy.
    """
    torch.manual_seed(0)
    module, inputs = MODELS[model](small)
    asking = choices(strategy, on_target)
    config.inductor_choices_class = lambda: asking
    config._post_fusion_custom_pass = asking.see
    config.benchmark_fusion = strategy == "benchmark_fusion"
    config.freezing = True
    config.force_disable_caches = True
    config.compile_threads = 1
    expected = module(*inputs)
    compiled = torch.compile(module, dynamic=False, fullgraph=True)
    with fresh_cache():
        began = time.perf_counter()
        result = compiled(*inputs)
        compile_s = time.perf_counter() - began
    torch.testing.assert_close(result, expected, rtol=1e-3, atol=1e-3)
    for question, answer in asking.answers.items():
        print(f"{strategy}: {question.problem or '+'.join(question.ops)}: {answer}", file=sys.stderr)
    several = [kernel for kernel in asking.kernels if not kernel.is_within_an_op]
    named = [kernel.problem for kernel in several if kernel.problem is not None]
    saved = [saved_ms(known(on_target, problem)) for problem in named]
    # Kept apart, an op is still inlined into each of the loops that read it, so that kernels of parts
    # of a problem look like it: what is vetoed saves nothing by definition.
    is_predicted = strategy not in ("never", "op by op") and None not in saved
    return lambda: compiled(*inputs), Compiled(
        compile_s,
        len(asking.kernels),
        len(named),
        math.fsum(saved) if is_predicted else None,
    )
