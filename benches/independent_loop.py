"""Times three problems with PyTorch by a plain loop, in turns with `calibrate --runtime pytorch`, and
prints how far the two are apart. Needs torch, and Python 3.11 or newer.

    python3 benches/independent_loop.py --calibrate target/release/calibrate

It shares nothing with calibrate or its runtimes: modules as a user writes them, tensors where PyTorch
puts them, and a clock around a loop, in a fresh process each time. calibrate measures in parts of some
seconds, each continuing the one before, and some processes of the loop follow each part: so what the
machine does meanwhile meets both.
"""

import argparse
import itertools
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

WARM_UP_S = 0.5
SAMPLE_S = 0.005
SAMPLES = 100
# Long enough for two or three of calibrate's processes.
PART = "40s"
LOOPS_BEHIND_A_PART = 2
RESAMPLES = 2000


def linear_bias_relu():
    import torch

    weight = torch.randn(3072, 768) / 768**0.5
    bias = torch.randn(3072)

    def unfused(x):
        y = torch.nn.functional.linear(x, weight)
        return torch.relu(torch.add(y, bias))

    layer = torch.nn.Linear(768, 3072)
    return unfused, torch.nn.Sequential(layer, torch.nn.ReLU()), [torch.randn(128, 768)]


def add_layernorm():
    import torch

    norm = torch.nn.LayerNorm(1024)

    def fused(x, other):
        return norm(x + other)

    return fused, fused, [torch.randn(256, 1024), torch.randn(256, 1024)]


def conv_bn_relu():
    import torch

    conv = torch.nn.Conv2d(64, 64, 3, padding=1, bias=False)
    model = torch.nn.Sequential(conv, torch.nn.BatchNorm2d(64), torch.nn.ReLU())
    model = model.eval().to(memory_format=torch.channels_last)
    image = torch.randn(1, 64, 56, 56).to(memory_format=torch.channels_last)
    return model, model, [image]


PROBLEMS = {
    "linear_bias_relu/f32/m128.k768.n3072": linear_bias_relu,
    "add_layernorm/f32/m256.n1024": add_layernorm,
    "conv_bn_relu/f32/n1.c64.h56.w56.k64.r3.s3.pad1": conv_bn_relu,
}
VARIANTS = ["unfused", "fused"]


def times_of_loop(problem):
    """Prints the median time of both variants in this process, in milliseconds."""
    os.environ["TORCHINDUCTOR_FREEZING"] = "1"
    import torch

    torch.set_num_threads(1)
    unfused, fused, inputs = PROBLEMS[problem]()
    with torch.no_grad():
        runs = [unfused, torch.compile(fused)]
        counts = [iterations(run, inputs) for run in runs]
        samples = [[], []]
        for _ in range(SAMPLES):
            for run, count, sample in zip(runs, counts, samples):
                # The other variant's tensors are in the caches now, and this one's are not.
                run(*inputs)
                began = time.perf_counter_ns()
                for _ in range(count):
                    run(*inputs)
                sample.append((time.perf_counter_ns() - began) / count / 1e6)
    print(*(statistics.median(sample) for sample in samples))


def iterations(run, inputs):
    """How many take the time of a sample, after some that nobody times."""
    run(*inputs)
    count, began = 0, time.perf_counter()
    while time.perf_counter() < began + WARM_UP_S:
        run(*inputs)
        count += 1
    return max(1, round(count * SAMPLE_S / WARM_UP_S))


def by_loop(problem):
    command = [sys.executable, __file__, "--loop", problem]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(zip(VARIANTS, map(float, done.stdout.split())))


class Calibration:
    """A calibration of the problems that is made in parts."""

    def __init__(self, program, processes, folder):
        self.output = Path(folder) / "calibration.toml"
        self.command = [program, "--runtime", "pytorch", "--threads", "1", "--quick", "--force"]
        self.command += ["--processes", str(processes), "--time-budget", PART]
        self.command += ["--output", self.output]
        for problem in PROBLEMS:
            self.command += ["--problem", problem]
        # Its runtime runs in the `python3` of the PATH.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.env = {**os.environ, "PATH": path}

    def part(self):
        """Measures one, and says whether there is more to measure."""
        done = subprocess.run(
            self.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self.env
        )
        if self.output.exists():
            return self.read()["settings"]["end"] == "time-budget"
        # The first parts measure what a calibration needs besides its problems.
        if not Path(f"{self.output}.journal").exists():
            sys.exit(f"calibrate wrote nothing:\n{done.stderr}")
        return True

    def read(self):
        return tomllib.loads(self.output.read_text())

    def times(self, problem, variant):
        """The median of each process, in milliseconds; none before the problem was measured."""
        if not self.output.exists():
            return []
        records = [record for record in self.read()["fusion"] if record["problem"] == problem]
        return [time for record in records for time in record[f"{variant}_timing"]["process_ms"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calibrate", default="calibrate", metavar="PROGRAM")
    parser.add_argument("--processes", type=int, default=10, help="of calibrate, for each problem")
    parser.add_argument("--loop", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.loop:
        times_of_loop(given.loop)
        return
    loops = {problem: [] for problem in PROBLEMS}
    turns = itertools.cycle(PROBLEMS)
    with tempfile.TemporaryDirectory() as folder:
        calibration = Calibration(given.calibrate, given.processes, folder)
        try:
            for number in itertools.count(1):
                print(f"part {number}", file=sys.stderr)
                more = calibration.part()
                for problem in itertools.islice(turns, LOOPS_BEHIND_A_PART):
                    loops[problem].append(by_loop(problem))
                if not more:
                    break
        except KeyboardInterrupt:
            print("interrupted: the table has the processes that ended", file=sys.stderr)
        print_table(calibration, loops)


def print_table(calibration, loops):
    print("| problem | variant | calibrate, ms | the loop, ms | processes | apart | 95 % |")
    print("|---|---|---:|---:|---|---:|---|")
    for problem in PROBLEMS:
        for variant in VARIANTS:
            ours = calibration.times(problem, variant)
            theirs = [loop[variant] for loop in loops[problem]]
            if not ours or not theirs:
                continue
            medians = f"{statistics.median(ours):.4f} | {statistics.median(theirs):.4f}"
            low, high = interval(ours, theirs)
            found = f"{apart(ours, theirs):+.1f} % | {low:+.1f} to {high:+.1f} %"
            print(
                f"| `{problem}` | {variant} | {medians} | {len(ours)}, {len(theirs)} | {found} |"
            )


def apart(ours, theirs):
    return 100 * (statistics.median(ours) / statistics.median(theirs) - 1)


def interval(ours, theirs):
    """Of how far the two are apart: processes are drawn again, with a fixed seed."""
    draw = random.Random(1).choices
    drawn = sorted(
        apart(draw(ours, k=len(ours)), draw(theirs, k=len(theirs))) for _ in range(RESAMPLES)
    )
    return drawn[RESAMPLES * 25 // 1000], drawn[RESAMPLES * 975 // 1000 - 1]


if __name__ == "__main__":
    main()
