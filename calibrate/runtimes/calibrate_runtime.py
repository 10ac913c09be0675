"""What the runtimes of this folder share: the protocol of docs/adding-a-runtime.md, and tensors that
move. A runtime is an object with `name`, `needs` (modules to import), `dtypes` (if they are others than
f32), `version()`, `options(threads)`, `supports(problem)` and `prepare(problem, tensors, threads)`; the
latter returns a `Prepared`."""

import ctypes
import gc
import importlib
import json
import mmap
import os
import platform
import sys
import time
import weakref

LINE = 64  # Bytes of a cache line: every tensor begins at one.
MOST_GAP = 1024  # Lines by which a tensor may be shifted, as calibrate does with its own.


# How NumPy holds the numbers of each dtype. It has none for bf16: those are bits.
STORED = {"f32": "float32", "f16": "float16", "bf16": "uint16"}


class Unsupported(Exception):
    """A problem that a runtime does not run, with the reason."""


class Problem:
    """A problem as calibrate describes it. Shapes are row-major, images NHWC, weights [k, n], filters
    [r, s, c / groups, k]."""

    def __init__(self, description):
        self.text = description["text"]
        self.dtype = description["dtype"]
        self.inputs = description["inputs"]
        self.ops = description["ops"]
        self.output = description["output"]

    @property
    def is_image(self):
        return any(op["op"] in ("conv2d", "max_pool") for op in self.ops)

    def moving(self):
        """The numbers of the inputs that are not weights."""
        return [i for i, one in enumerate(self.inputs) if not one["constant"]]


class Tensors:
    """The inputs as NumPy arrays. Weights stay where they are, as a program keeps them; everything else
    and the output lie in one block of memory, at places that `place` draws.

    `as_given` and `as_wanted` turn an image from NHWC into what the runtime computes on and back."""

    def __init__(self, problem, files, output, nchw=False):
        import numpy

        self.numpy, self.problem, self.nchw = numpy, problem, nchw and problem.is_image
        self.dtype = numpy.dtype(STORED[problem.dtype])
        read = lambda path, one: numpy.fromfile(path, self.dtype).reshape(one["shape"])
        self.given = [read(path, one) for path, one in zip(files, problem.inputs)]
        self.file = numpy.memmap(output, self.dtype, "r+", shape=tuple(problem.output))
        moving = {i: self.wanted(self.given[i]) for i in problem.moving()}
        shapes = {i: one.shape for i, one in moving.items()}
        shapes[None] = self.wanted(self.file).shape
        self.sources, self.shapes = moving, shapes
        sizes = [self.lines(shape) + MOST_GAP for shape in shapes.values()]
        self.block = mmap.mmap(-1, max(sum(sizes), 1) * LINE)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            try:
                self.block.madvise(mmap.MADV_HUGEPAGE)
            except OSError:
                pass  # The system has none.
        self.views = {}
        self.place(0)

    def wanted(self, image):
        transposed = self.nchw and image.ndim == 4
        return self.numpy.ascontiguousarray(image.transpose(0, 3, 1, 2)) if transposed else image

    def lines(self, shape):
        count = 1
        for size in shape:
            count *= size
        return -(-self.dtype.itemsize * count // LINE)

    def place(self, seed):
        """Draws a place for every tensor, and writes the inputs there."""
        random = self.numpy.random.default_rng(seed)
        names = list(self.shapes)
        random.shuffle(names)
        line = 0
        for name in names:
            line += int(random.integers(MOST_GAP))
            shape = self.shapes[name]
            count = int(self.numpy.prod(shape))
            flat = self.numpy.frombuffer(self.block, self.dtype, count, line * LINE)
            self.views[name] = flat.reshape(shape)
            line += self.lines(shape)
        for name, source in self.sources.items():
            self.views[name][...] = source
        self.poison()

    def input(self, number):
        """An input where it lies now; a weight as it was given."""
        return self.views[number] if number in self.views else self.given[number]

    @property
    def output(self):
        return self.views[None]

    def poison(self):
        # All bits are set in a NaN of every dtype.
        self.output.view(self.numpy.uint8).fill(255)

    def write_output(self):
        output = self.output
        transposed = self.nchw and output.ndim == 4
        self.file[...] = output.transpose(0, 2, 3, 1) if transposed else output
        self.file.flush()


class Prepared:
    """Both variants of a problem: `kernels` in words by variant, and `bind()`, which returns a function
    by variant for the tensors where they lie now. What that returns is the output, if it is not
    written to `tensors.output`."""

    def __init__(self, tensors, kernels, bind):
        self.tensors, self.kernels, self.bind = tensors, kernels, bind
        self.runs, self.result = bind(), None
        # What each variant returned last, if it is still there: a buffer of the variant's own.
        self.returned = {}

    def place(self, seed):
        self.tensors.place(seed)
        self.runs = self.bind()

    def poison(self):
        for result in [reference() for reference in self.returned.values()]:
            if result is not None:
                fill = getattr(result, "fill_", None) or result.fill
                fill(float("nan"))
        self.result = None
        self.tensors.poison()

    def returns(self, variant, result):
        self.result = result
        if result is not None:
            self.returned[variant] = weakref.ref(result)

    def write_output(self):
        if self.result is not None:
            self.tensors.output[...] = self.result
        self.tensors.write_output()


class Server:
    def __init__(self, runtime):
        self.runtime, self.prepared, self.threads = runtime, {}, 1

    def hello(self, threads, cache=None, **_):
        self.threads = threads
        if cache:
            os.environ["CALIBRATE_CACHE"] = cache
        missing = []
        for module in self.runtime.needs:
            try:
                importlib.import_module(module)
            except ModuleNotFoundError as error:
                if error.name is None:
                    raise
                missing.append(error.name)
        if missing:
            names = " and no ".join(dict.fromkeys(missing))
            return {"missing": f"{sys.executable} has no {names}"}
        options = {"python": platform.python_version(), **self.runtime.options(threads)}
        return {
            "name": self.runtime.name,
            "version": self.runtime.version(),
            "device": "cpu",
            "dtypes": getattr(self.runtime, "dtypes", ["f32"]),
            "clock": "host",
            "options": options,
        }

    def supports(self, problem, **_):
        self.runtime.supports(Problem(problem))
        return {}

    def prepare(self, id, problem, files, output, **_):
        problem = Problem(problem)
        self.runtime.supports(problem)
        tensors = Tensors(problem, files, output, self.runtime.nchw)
        self.prepared[id] = self.runtime.prepare(problem, tensors, self.threads)
        gc.collect()
        gc.freeze()
        return {"kernels": self.prepared[id].kernels, "layouts": True}

    def layout(self, id, seed, **_):
        self.prepared[id].place(seed)
        return {}

    def poison(self, id, **_):
        self.prepared[id].poison()
        return {}

    def run(self, id, variant, iterations, **_):
        one = self.prepared[id]
        run = one.runs[variant]
        if not iterations:
            return {"ns": 0}
        # Each result is let go of before the next one: else they would take turns in two places, and the
        # first runs of a sample write to memory that is in no cache.
        one.result = None
        begin = time.perf_counter_ns()
        for _ in range(iterations - 1):
            run()
        result = run()
        taken = time.perf_counter_ns() - begin
        one.returns(variant, result)
        return {"ns": taken}

    def output(self, id, **_):
        self.prepared[id].write_output()
        return {}


def keep_freed_memory():
    """Lets glibc keep what is freed below 32 MiB, as it does in a program that goes on computing. By
    default it gives the end of the heap back to the system when the results of a sample are freed, and
    the first runs of the next sample wait for pages."""
    M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return  # Another library, which has no such call.
    mallopt(M_MMAP_THRESHOLD, 32 << 20)  # The largest, up to which glibc raises it by itself.
    mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def serve(runtime):
    """Answers what calibrate asks, until it has enough."""
    keep_freed_memory()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # What libraries print goes to the log.
    gc.disable()  # A collection in the middle of a sample is not a kernel.
    server = Server(runtime)
    for line in sys.stdin:
        request = json.loads(line)
        do, number = request.pop("do"), request.pop("n")
        if do == "end":
            break
        try:
            answer = getattr(server, do)(**request)
        except Unsupported as reason:
            answer = {"unsupported": str(reason)}
        except Exception as error:  # Whatever a framework raises is this problem's end, not the run's.
            text = str(error).strip().splitlines() or [""]
            answer = {"error": f"{type(error).__name__}: {text[0][:300]}"}
        answers.write(json.dumps({"n": number, **answer}) + "\n")
        answers.flush()


def no_dropout(problem):
    """What every runtime that draws its own random numbers says."""
    if any(op["op"] == "dropout" for op in problem.ops):
        raise Unsupported("its dropout draws other random numbers than the reference")


def plain_attention(problem):
    """What a runtime says whose attention has neither a mask nor heads that share keys and values."""
    shape = problem.inputs[0]["shape"]
    for op in problem.ops:
        if op["op"] == "softmax" and op["attributes"].get("causal"):
            raise Unsupported("its attention has no causal mask")
        if op["op"] in ("qk", "pv") and problem.inputs[op["operands"][0]]["shape"][1] != shape[1]:
            raise Unsupported("its heads do not share keys and values")
        shape = op["shape"]
