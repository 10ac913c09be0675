"""Prints what Inductor asks about a model, as options for calibrate.

    python3 questions.py --model bert [--small] > problems.txt
    calibrate --runtime inductor.toml --threads 1 $(cat problems.txt) --output inductor.calibration.toml
"""

from __future__ import annotations

import argparse

import torch
import torch._inductor.config as inductor_config
from choices import Asking, as_inductor, backend
from models import MODELS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, action="append", required=True)
    parser.add_argument("--small", action="store_true", help="a small variant of the model")
    given = parser.parse_args()
    torch.set_grad_enabled(False)
    inductor_config.freezing = True
    inductor_config.force_disable_caches = True
    asked = set()
    for name in given.model:
        module, inputs = MODELS[name](given.small)
        choices = Asking(as_inductor)
        torch.compile(module, backend=backend(choices), dynamic=False)(*inputs)
        asked |= {str(question.problem) for question in choices.answers if question.problem}
    for problem in sorted(asked):
        print(f"--problem {problem}")


if __name__ == "__main__":
    main()
