"""Compares ways to answer Inductor's questions, on a whole model.

    python3 compare.py --calibration inductor.calibration.toml --model bert [--small]

Each strategy has a process of its own. The processes take turns, one run of the model after the other
in random order, and are all started anew several times: intervals are over these passes.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
import time

# Student's t for 95 %, by the number of passes.
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}


class Worker:
    """A process with the model compiled by a strategy."""

    def __init__(self, strategy: str, options: list[str]) -> None:
        command = [sys.executable, __file__, *options, "--worker", strategy]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.compiled = self.answer()

    def answer(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"error: a process ended with {self.process.wait()}; see above")
        return json.loads(line)

    def run(self) -> float:
        """Milliseconds of a run."""
        print("run", file=self.process.stdin, flush=True)
        return self.answer()["ms"]

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def work(given: argparse.Namespace) -> None:
    """What the process of a strategy does."""
    import torch
    from strategies import compile_model, load

    torch.set_num_threads(given.threads)
    torch.set_grad_enabled(False)
    run, compiled = compile_model(given.model, given.small, given.worker, load(given.calibration))
    print(json.dumps(compiled.as_dict()), flush=True)
    for _ in sys.stdin:
        began = time.perf_counter_ns()
        run()
        print(json.dumps({"ms": (time.perf_counter_ns() - began) / 1e6}), flush=True)


def one_pass(strategies: list[str], rounds: int, options: list[str]) -> dict[str, dict]:
    """What each strategy was compiled to, and the times of its runs."""
    shuffled = random.sample(strategies, len(strategies))
    workers = {strategy: Worker(strategy, options) for strategy in shuffled}
    times = {strategy: [] for strategy in strategies}
    for index in range(rounds + 3):
        for strategy in random.sample(strategies, len(strategies)):
            time_ms = workers[strategy].run()
            if index >= 3:  # The first runs meet cold caches.
                times[strategy].append(time_ms)
    for worker in workers.values():
        worker.end()
    return {one: {**workers[one].compiled, "ms": times[one]} for one in strategies}


def interval(values: list[float]) -> tuple[float, float]:
    """The mean over the passes, and half the width of its 95 % interval."""
    mean = statistics.fmean(values)
    if len(values) not in STUDENT:
        return mean, math.nan
    return mean, STUDENT[len(values)] * statistics.stdev(values) / math.sqrt(len(values))


def table(passes: list[dict[str, dict]], strategies: list[str]) -> str:
    def over_passes(value) -> list[float]:
        return [value(one) for one in passes]

    def typical(one: dict, strategy: str, reference: str | None = None) -> float:
        """The median over the rounds of a time, or of how much it is below another."""
        own = one[strategy]["ms"]
        less = [b - a for a, b in zip(own, one[reference]["ms"])] if reference else own
        return statistics.median(less)

    lines = [
        "| strategy | compile, s | kernels | run, ms | less than op by op, ms | predicted, ms |",
        "|---|---|---|---|---|---|",
    ]
    for strategy in strategies:
        compile_s = statistics.median(over_passes(lambda one: one[strategy]["compile_s"]))
        run_ms = statistics.fmean(over_passes(lambda one: typical(one, strategy)))
        less, half = interval(over_passes(lambda one: typical(one, strategy, "op by op")))
        first = passes[0][strategy]
        predicted = first["predicted_ms"]
        predicted = "" if predicted is None else f"{predicted:.3f}"
        margin = "" if math.isnan(half) else f" ± {half:.3f}"
        lines.append(
            f"| {strategy} | {compile_s:.1f} | {first['kernels']} | {run_ms:.2f} |"
            f" {less:.3f}{margin} | {predicted} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calibration", required=True, metavar="FILE")
    parser.add_argument("--model", choices=["bert", "resnet"], required=True)
    parser.add_argument("--small", action="store_true", help="a small variant of the model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work(given)
        return
    from strategies import STRATEGIES

    options = ["--calibration", given.calibration, "--model", given.model]
    options += ["--threads", str(given.threads), *(["--small"] if given.small else [])]
    passes = [one_pass(STRATEGIES, given.rounds, options) for _ in range(given.passes)]
    print(table(passes, STRATEGIES))
    kernels = passes[0]["default"]
    print(f"\nBy itself, Inductor makes {kernels['named']} kernels of ops that the cost model has names")
    print("for together.")


if __name__ == "__main__":
    main()
