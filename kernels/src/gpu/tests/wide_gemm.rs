//! The wide core of MFMA: the core by itself, tiles of GEMMs with it, and what it is made of in the
//! machine code.

use fusion_cost_model::Problem;

use super::emulation::{Headers, Kernels, Order, check_on, compiler, device, launch};
use super::mutations::expect_missed;
use crate::gpu::lower::lower;
use crate::gpu::{Code, DeviceFacts, LaunchShape};

/// A device with one processor, for which large tiles are the best of small problems, too.
fn small_device(name: &str) -> DeviceFacts {
    DeviceFacts { processors: 1, ..device(name) }
}

/// Two steps along k, by each of two warps. All numbers are small integers, and so are their sums.
const BODY: &str = r"
    using Core = port::WideCore<T>;
    constexpr int M = Core::M, N = Core::N, K = Core::K, COLS = Core::COLS_OF_A;
    T* const a = reinterpret_cast<T*>(port::shared()) + port::warp() * (M * COLS + COLS * N);
    T* const b = a + M * COLS;
    const int seed = 7 * port::warp();
    const auto a_at = [&](int i, int k) { return float((i * 5 + k * 3 + seed) % 5 - 2); };
    const auto b_at = [&](int k, int j) { return float((k * 7 + j * 11 + k * j + seed) % 5 - 2); };
    for (int i = port::lane(); i < M * COLS; i += port::WARP) {
        const int row = i / COLS, k = i % COLS;
        a[row * COLS + Core::place_in_a(row, k)] = port::from_float<T>(a_at(row, k));
    }
    for (int i = port::lane(); i < COLS * N; i += port::WARP)
        b[i] = port::from_float<T>(b_at(i / N, i % N));
    port::sync_warp();
    typename Core::C sums = {};
    for (int k = 0; k < COLS; k += K) {
        typename Core::A left;
        typename Core::B right;
        Core::load_a(left, a, COLS, k);
        Core::load_b(right, b + k * N, N);
        Core::multiply(sums, left, right);
    }
    i64 wrong = 0, wrong_runs = 0;
    for (int i = 0; i < Core::SIZE; i++) {
        const int row = Core::row(i), col = Core::col(i);
        float sum = 0;
        for (int k = 0; k < COLS; k++) sum += a_at(row, k) * b_at(k, col);
        wrong += sums.x[i] != sum;
        wrong_runs += i % Core::RUN != 0 && (Core::row(i - 1) != row || Core::col(i - 1) + 1 != col);
        // Marks the elements that this lane has: each must be one lane's.
        port::atomic_add(args.seen + port::warp() * M * N + row * N + col, 1);
    }
    args.found[port::thread() * 2] = wrong;
    args.found[port::thread() * 2 + 1] = wrong_runs;
";

#[test]
fn every_member_of_the_core_is_right() {
    if compiler().is_none() {
        return;
    }
    let architecture = device("gfx942").architecture;
    for number in ["port::f16", "port::bf16"] {
        let entry = format!("wide_core_{}", number.replace("::", "_"));
        let text = format!(
            "#include \"port.h\"\n#include \"number.h\"\n#include \"matrix_core.h\"\nusing T = \
             {number};\nstruct Args {{ i64* found; u32* seen; }};\nPORT_KERNEL({entry}, Args, 128) \
             {{{BODY}}}\n"
        );
        let code = Code { entry, text };
        let kernels = Kernels::of([&code], &architecture, &Headers::shipped());
        for order in [Order::Forward, Order::Reverse, Order::Shuffled(1)] {
            let mut found = vec![-1_i64; 128 * 2];
            let mut seen = vec![0_u32; 2 * 32 * 64];
            let arguments = [found.as_mut_ptr().addr(), seen.as_mut_ptr().addr()];
            let arguments = arguments.map(|address| (address as u64).to_ne_bytes()).concat();
            let shape = LaunchShape {
                grid: [1, 1, 1],
                threads: 128,
                shared_bytes: 2 * 2 * (32 * 32 + 32 * 64),
                cooperative: false,
                cluster: 1,
            };
            let launched = launch(&kernels, &code, &shape, 1, &arguments, order);
            launched.unwrap_or_else(|failed| panic!("{number}: {}", failed.what));
            assert!(found.iter().all(|&wrong| wrong == 0), "{number}, {order:?}: {found:?}");
            assert!(seen.iter().all(|&times| times == 1), "{number}, {order:?}");
        }
    }
}

/// Numbers that are copied 1, 2, 4 and 8 at a time; one step along k and less, and several; edges on
/// all sides; every shape of the tiles, and a phase after them.
#[test]
fn linear_layers_with_what_follows() {
    let problems = [
        ("linear+bias+relu/bf16/m250.k72.n248", "wide_128x128x32"),
        ("linear+bias+gelu/f16/m250.k36.n184", "wide_128x64x32"),
        ("linear+add/f16/m190.k129.n251", "wide_64x128x32"),
        ("linear+bias+dropout/bf16/m192.k8.n250", "wide_64x128x32"),
        ("linear+bias+layer_norm/f16/m129.k40.n256", "wide_64x128x32"),
    ];
    for (architecture, problems) in [("gfx942", &problems[..]), ("gfx90a", &problems[..1])] {
        let device = small_device(architecture);
        for (text, shape) in problems {
            let plan = lower(&text.parse().unwrap(), &device).unwrap();
            for kernel in [&plan.unfused[0], &plan.fused] {
                assert!(kernel.code.entry.contains(shape), "{text}: {}", kernel.code.entry);
            }
        }
        let problems: Vec<Problem> =
            problems.iter().map(|(text, _)| text.parse().unwrap()).collect();
        check_on(&problems, &device);
    }
}

const CORE: &str = "matrix_core/mfma_wide.h";
/// What takes the place of something that it needs.
const CHANGES: [(&str, &str, &str); 6] = [
    // The other buffer is written while some read it.
    (
        "gemm.h",
        "sync_block();\n            fetch(buffers + next",
        "thread();\n            fetch(buffers + next",
    ),
    (CORE, "lane() / 32 * 8 + i % 8", "lane() / 32 * 8 + (i ^ 1) % 8"),
    (CORE, "k + lane() / 32 * 4", "k"),
    (CORE, "? (first & 0xffffu) | second << 16 :", "? first :"),
    ("gemm/operands.h", "Core::place_in_a(row, k + 4)", "Core::place_in_a(row, k) + 4"),
    ("gemm.h", "place.col + warp_col + part * Staged::COLS", "place.col + warp_col"),
];

fn are_missed(changes: &[(&str, &str, &str)]) {
    let orders = [Order::Forward, Order::Reverse, Order::Shuffled(1)];
    for (header, from, to) in changes {
        let problem = "linear+bias/bf16/m250.k72.n248";
        expect_missed(header, problem, &[(from, to)], &small_device("gfx942"), &orders);
    }
}

#[test]
fn a_missing_barrier_between_both_buffers_is_seen() {
    are_missed(&CHANGES[..1]);
}

#[test]
fn all_that_the_core_needs_is_missed() {
    are_missed(&CHANGES[1..]);
}
