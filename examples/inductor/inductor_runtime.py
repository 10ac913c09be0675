"""Inductor's own kernels as a runtime of calibrate: fused as it likes, against those that are left when
every fusion of two ops is vetoed. What a veto costs is then what the calibration says.

    calibrate --runtime examples/inductor/inductor.toml --problem add+layer_norm/f32/m128.n768
"""

import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[2] / "calibrate" / "runtimes"))

from calibrate_runtime import serve
from pytorch_runtime import PyTorch, compiled


class Inductor(PyTorch):
    name, needs = "inductor", [*PyTorch.needs, "fusion_cost_model"]

    def options(self, threads):
        import torch._inductor.config

        options = super().options(threads)
        # Its cache of graphs does not know which choices were made.
        torch._inductor.config.force_disable_caches = True
        fused, vetoed = "inductor, freezing", "the same without fusions of two ops"
        return {**options, "fused": fused, "unfused": vetoed}

    def variants(self, ops, chain, arguments):
        from choices import Asking, as_inductor, backend, op_by_op

        def variant(answer):
            asking = Asking(answer)
            run, (called,) = compiled(chain(True), arguments, backend(asking))
            # A function that Inductor generates can hold several kernels.
            return run, [f"{called}, {len(asking.kernels)} generated"]

        return {"unfused": variant(op_by_op), "fused": variant(as_inductor)}


if __name__ == "__main__":
    serve(Inductor())
