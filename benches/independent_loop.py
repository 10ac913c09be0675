"""Times three problems with PyTorch by a plain loop, in turns with `calibrate --runtime pytorch`, and
prints how far the two are apart. Needs torch, and Python 3.11 or newer.

    python3 benches/independent_loop.py --calibrate target/release/calibrate

It shares nothing with calibrate or its runtimes: modules as a user writes them, tensors where PyTorch
puts them, and a clock around a loop. In each pass, calibrate measures all problems, and then each of
them is timed in fresh processes of its own, as many as calibrate starts.
"""

import argparse
import os
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
# As many as a quick calibration starts.
PROCESSES = 3


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


def by_calibrate(program):
    """What a calibration says, by problem."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "calibration.toml"
        command = [program, "--runtime", "pytorch", "--threads", "1", "--quick", "--force"]
        command += ["--output", output]
        for problem in PROBLEMS:
            command += ["--problem", problem]
        # Its runtime runs in the `python3` of the PATH.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PATH": path}
        )
        records = tomllib.loads(output.read_text())["fusion"]
    return {
        record["problem"]: {variant: record[f"{variant}_latency_ms"] for variant in VARIANTS}
        for record in records
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calibrate", default="calibrate", metavar="PROGRAM")
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--loop", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.loop:
        times_of_loop(given.loop)
        return
    passes = []
    try:
        for number in range(given.passes):
            print(f"pass {number + 1} of {given.passes}", file=sys.stderr)
            calibrated = by_calibrate(given.calibrate)
            loops = {problem: [by_loop(problem) for _ in range(PROCESSES)] for problem in PROBLEMS}
            passes.append((calibrated, loops))
    except KeyboardInterrupt:
        print("interrupted: the table has the passes that ended", file=sys.stderr)
    if passes:
        print_table(passes)


def print_table(passes):
    print("| problem | variant | calibrate, ms | the loop, ms | apart | apart in each pass, % |")
    print("|---|---|---:|---:|---:|---|")
    for problem in PROBLEMS:
        for variant in VARIANTS:
            ours = [calibrated[problem][variant] for calibrated, _ in passes]
            loops = [
                statistics.median(loop[variant] for loop in of_loops[problem])
                for _, of_loops in passes
            ]
            apart = sorted(100 * (a / b - 1) for a, b in zip(ours, loops))
            medians = f"{statistics.median(ours):.4f} | {statistics.median(loops):.4f}"
            middle = f"{statistics.median(apart):+.1f} %"
            each = ", ".join(f"{one:+.1f}" for one in apart)
            print(f"| `{problem}` | {variant} | {medians} | {middle} | {each} |")


if __name__ == "__main__":
    main()
