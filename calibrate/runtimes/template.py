"""A runtime of the smallest size: `add`, `mul` and `relu` in plain Python. Copy it and put your kernels
into `prepare`. docs/adding-a-runtime.md is the protocol; nothing but this file and Python is needed."""
import array, json, math, mmap, os, platform, sys, time

answers = os.fdopen(os.dup(1), "w")  # What anybody prints goes to the log, not between the answers.
os.dup2(2, 1)

OPS = {
    "add": lambda x, other: [a + b for a, b in zip(x, other)],
    "mul": lambda x, other: [a * b for a, b in zip(x, other)],
    "relu": lambda x: [max(a, 0.0) for a in x],
}
prepared = {}  # By the number that calibrate gives a problem.


class Problem:
    def __init__(self, problem, files, output):
        read = lambda path: array.array("f", open(path, "rb").read())
        self.inputs = [read(path) for path in files]
        self.ops = [(OPS[op["op"]], op["operands"]) for op in problem["ops"]]
        # Both names are gone when `prepare` has been answered, so everything is opened here.
        self.file = mmap.mmap(os.open(output, os.O_RDWR), 4 * math.prod(problem["output"]))
        self.result = []

    def run(self):
        x = self.inputs[0]
        for op, operands in self.ops:
            x = op(x, *(self.inputs[operand] for operand in operands))
        self.result = x


def answer(do, id=None, problem=None, files=(), output="", iterations=0, **_):
    if do == "hello":
        version = platform.python_version()
        return dict(name="template", version=version, device="cpu", dtypes=["f32"], clock="host")
    if do == "supports":
        lacking = [op["op"] for op in problem["ops"] if op["op"] not in OPS]
        return {"unsupported": f"it has no {lacking[0]}"} if lacking else {}
    if do == "prepare":
        prepared[id] = Problem(problem, files, output)
        ops = [op["op"] for op in problem["ops"]]  # No fusion: both variants are the same.
        return dict(kernels=dict(unfused=ops, fused=["; ".join(ops)]), layouts=False)
    one = prepared[id]
    if do == "run":
        begin = time.perf_counter_ns()
        for _ in range(iterations):
            one.run()
        return {"ns": time.perf_counter_ns() - begin if iterations else 0}
    if do == "poison":
        one.result = [math.nan] * (len(one.file) // 4)
    if do == "output":
        one.file[:] = array.array("f", one.result).tobytes()
    return {}


for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "end":
        break
    print(json.dumps(answer(**request) | {"n": request["n"]}), file=answers, flush=True)
