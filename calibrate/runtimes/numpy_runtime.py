"""NumPy: some calls for each op, into arrays that exist. It fuses nothing, so that both variants are the
same, and the records say so."""

import math

from calibrate_runtime import Prepared, Unsupported, no_dropout, plain_attention, serve

HALF = math.sqrt(0.5)
POINTWISE = {
    "bias": lambda np, x, bias, out: np.add(x, bias, out=out),
    "add": lambda np, x, other, out: np.add(x, other, out=out),
    "mul": lambda np, x, other, out: np.multiply(x, other, out=out),
    "scale": lambda np, x, factor, out: np.multiply(x, factor, out=out),
    "relu": lambda np, x, out: np.maximum(x, np.float32(0), out=out),
    "relu6": lambda np, x, out: np.clip(x, np.float32(0), np.float32(6), out=out),
    "tanh": lambda np, x, out: np.tanh(x, out=out),
}


def sigmoid(np, x, out):
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, np.float32(1), out=out)
    np.reciprocal(out, out=out)


def softmax(np, x, out):
    np.subtract(x, x.max(-1, keepdims=True), out=out)
    np.exp(out, out=out)
    np.divide(out, out.sum(-1, keepdims=True), out=out)


def layer_norm(np, x, weight, shift, epsilon, out):
    np.subtract(x, x.mean(-1, keepdims=True), out=out)
    scale = 1 / np.sqrt((out * out).mean(-1, keepdims=True) + np.float32(epsilon))
    np.multiply(out, scale, out=out)
    np.multiply(out, weight, out=out)
    np.add(out, shift, out=out)


def rms_norm(np, x, weight, epsilon, out):
    scale = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(epsilon))
    np.multiply(x, scale, out=out)
    np.multiply(out, weight, out=out)


def batch_norm(np, x, mean, variance, weight, shift, epsilon, out):
    gain = weight / np.sqrt(variance + np.float32(epsilon))
    np.multiply(x, gain, out=out)
    np.add(out, shift - mean * gain, out=out)


def attention_output(np, x, value, out):
    batch, queries, width = out.shape
    heads = out.reshape(batch, queries, x.shape[1], -1).transpose(0, 2, 1, 3)
    np.matmul(x, value, out=heads)


STRUCTURED = {
    "linear": lambda np, x, weight, out: np.matmul(x, weight, out=out),
    "pv": attention_output,
    "softmax": softmax,
    "sigmoid": sigmoid,
}
WITH_EPSILON = {"layer_norm": layer_norm, "rms_norm": rms_norm, "batch_norm": batch_norm}


class NumPy:
    name, needs, nchw = "numpy", ["numpy"], False

    def version(self):
        import numpy

        return numpy.__version__

    def options(self, threads):
        return {}

    def supports(self, problem):
        no_dropout(problem)
        plain_attention(problem)
        known = {"qk", *POINTWISE, *STRUCTURED, *WITH_EPSILON}
        for op in problem.ops:
            if op["op"] not in known:
                raise Unsupported(f"NumPy has no {op['op']}")

    def prepare(self, problem, tensors, threads):
        import numpy as np

        between = [np.empty(op["shape"], np.float32) for op in problem.ops[:-1]]

        def call(op, x, operands, out):
            name, attributes = op["op"], op["attributes"]
            if name == "qk":
                keys, scale = operands[0].swapaxes(-1, -2), np.float32(attributes["scale"])

                def scores():
                    np.matmul(x, keys, out=out)
                    if scale != 1:
                        np.multiply(out, scale, out=out)

                return scores
            if name in WITH_EPSILON:
                of = WITH_EPSILON[name]
                return lambda: of(np, x, *operands, attributes["epsilon"], out=out)
            of = POINTWISE.get(name) or STRUCTURED[name]
            return lambda: of(np, x, *operands, out=out)

        def bind():
            calls, x = [], tensors.input(0)
            for op, out in zip(problem.ops, [*between, tensors.output]):
                calls.append(call(op, x, [tensors.input(i) for i in op["operands"]], out))
                x = out

            def run():
                for one in calls:
                    one()

            return {"unfused": run, "fused": run}

        ops = [op["op"] for op in problem.ops]
        joined = "; ".join(ops) + " (NumPy fuses nothing)"
        return Prepared(tensors, {"unfused": ops, "fused": [joined]}, bind)


if __name__ == "__main__":
    serve(NumPy())
