//! Every member of the interface of matrix cores by itself, against plain sums of the same numbers.

use super::emulation::{Headers, Kernels, Order, compiler, device, launch};
use crate::gpu::architecture::MatrixCore;
use crate::gpu::{Code, LaunchShape};

/// Two warps, so that a core which forgets that there is more than one does not pass.
///
/// All numbers are small integers, which every format holds exactly, and so are their sums. The
/// strides are those of rows with 16 bytes of padding.
const BODY: &str = r"
    using Core = port::MatrixCore<T>;
    constexpr int M = Core::M, N = Core::N, K = Core::K, PAD = 16 / int(sizeof(T));
    constexpr int DEEP = 2 * K;
    T* const a = reinterpret_cast<T*>(port::shared()) + port::warp() * 16384;
    T* const b = a + M * (DEEP + PAD);
    T* const b_columns = b + DEEP * (N + PAD);
    T* const b_next = b_columns + N * (DEEP + PAD);
    T* const scratch = b_next + N * (N + PAD);
    const int seed = 7 * port::warp();
    const auto a_at = [&](int i, int k) { return float((i * 5 + k * 3 + seed) % 5 - 2); };
    const auto b_at = [&](int k, int j) { return float((k * 7 + j * 11 + k * j + seed) % 5 - 2); };
    const auto next_at = [&](int k, int j) { return float((k * 3 + j * 13 + seed) % 7 - 3); };
    for (int i = port::lane(); i < M * DEEP; i += port::WARP)
        a[i / DEEP * (DEEP + PAD) + i % DEEP] = port::from_float<T>(a_at(i / DEEP, i % DEEP));
    for (int i = port::lane(); i < DEEP * N; i += port::WARP) {
        const int k = i / N, j = i % N;
        b[k * (N + PAD) + j] = b_columns[j * (DEEP + PAD) + k] = port::from_float<T>(b_at(k, j));
    }
    for (int i = port::lane(); i < N * N; i += port::WARP)
        b_next[i / N * (N + PAD) + i % N] = port::from_float<T>(next_at(i / N, i % N));
    port::sync_warp();

    const auto sum_at = [&](int row, int col) {
        float sum = 0;
        for (int k = 0; k < DEEP; k++) sum += a_at(row, k) * b_at(k, col);
        return sum;
    };
    i64 wrong_rows = 0, wrong_columns = 0, wrong_sums = 0, wrong_most = 0, wrong_next = 0;
    i64 wrong_runs = 0, elements = 0;
    typename Core::C by_rows = {}, by_columns = {};
    for (int k = 0; k < DEEP; k += K) {
        typename Core::A left;
        typename Core::B right;
        Core::load_a(left, a + k, DEEP + PAD);
        Core::load_b(right, b + k * (N + PAD), N + PAD);
        Core::multiply(by_rows, left, right);
        Core::load_b_columns(right, b_columns + k, DEEP + PAD);
        Core::multiply(by_columns, left, right);
    }
    float sums[Core::ROWS] = {}, most[Core::ROWS];
    for (int i = 0; i < Core::ROWS; i++) most[i] = -1e9f;
    for (int i = 0; i < Core::SIZE; i++) {
        const int row = Core::row(i), col = Core::col(i), which = Core::row_of(i);
        wrong_rows += by_rows.x[i] != sum_at(row, col);
        wrong_columns += by_columns.x[i] != sum_at(row, col);
        wrong_runs += i % Core::RUN != 0 && (Core::row(i - 1) != row || Core::col(i - 1) + 1 != col);
        // Marks the elements that this lane has: each must be one lane's.
        port::atomic_add(reinterpret_cast<u32*>(args.seen) + port::warp() * M * N + row * N + col, 1);
        sums[which] += by_rows.x[i];
        most[which] = port::max_number(most[which], by_rows.x[i]);
        elements++;
    }
    for (int i = 0; i < Core::ROWS; i++) {
        int row = -1;
        for (int x = 0; x < Core::SIZE; x++)
            if (Core::row_of(x) == i) row = Core::row(x);
        float sum = 0, largest = -1e9f;
        for (int col = 0; col < N; col++) {
            sum += sum_at(row, col);
            largest = port::max_number(largest, sum_at(row, col));
        }
        wrong_sums += Core::row_sum(sums[i]) != sum;
        wrong_most += Core::row_max(most[i]) != largest;
    }
    typename Core::A next[N / K];
    AS_OPERAND
    typename Core::C result = {};
    for (int k = 0; k < N / K; k++) {
        typename Core::B right;
        Core::load_b(right, b_next + k * K * (N + PAD), N + PAD);
        Core::multiply(result, next[k], right);
    }
    for (int i = 0; i < Core::SIZE; i++) {
        float sum = 0;
        for (int k = 0; k < N; k++) sum += sum_at(Core::row(i), k) * next_at(k, Core::col(i));
        wrong_next += result.x[i] != sum;
    }
    const i64 found[8] = {wrong_rows, wrong_columns, wrong_sums, wrong_most,
                          wrong_next, wrong_runs,    elements,   M * N};
    for (int i = 0; i < 8; i++) args.found[port::thread() * 8 + i] = found[i];
";

/// What makes an operand of a result: in registers, or through shared memory.
const IN_REGISTERS: &str = "Core::a_from_c(next, by_rows);";
const THROUGH_SCRATCH: &str = "
    for (int i = 0; i < Core::SIZE; i++)
        scratch[Core::row(i) * Core::SCRATCH_STRIDE + Core::col(i)] =
            port::from_float<T>(by_rows.x[i]);
    port::sync_warp();
    for (int k = 0; k < N / K; k++)
        Core::load_a(next[k], scratch + k * K, Core::SCRATCH_STRIDE);
";

const MEMBERS: [&str; 6] = ["load_b", "load_b_columns", "row_sum", "row_max", "a_from_c", "RUN"];

#[test]
fn every_member_of_every_core_is_right() {
    if compiler().is_none() {
        return;
    }
    for name in ["sm_75", "sm_80", "sm_90a", "gfx906", "gfx90a", "gfx942", "gfx1100", "gfx1201"] {
        let architecture = device(name).architecture;
        let threads = 2 * architecture.warp;
        for number in ["float", "port::f16", "port::bf16"] {
            let is_plain = number == "float" || architecture.matrix_core == MatrixCore::Plain;
            let body =
                BODY.replace("AS_OPERAND", if is_plain { THROUGH_SCRATCH } else { IN_REGISTERS });
            let entry = format!("core_{}", number.replace("::", "_"));
            let text = format!(
                "#include \"port.h\"\n#include \"number.h\"\n#include \"matrix_core.h\"\nusing T = \
                 {number};\nstruct Args {{ i64* found; u32* seen; }};\nPORT_KERNEL({entry}, Args, \
                 {threads}) {{{body}}}\n"
            );
            let code = Code { entry, text };
            let kernels = Kernels::of([&code], &architecture, &Headers::shipped());
            for order in [Order::Forward, Order::Reverse, Order::Shuffled(1)] {
                let mut found = vec![-1_i64; 128 * 8];
                let mut seen = vec![0_u32; 2 * 32 * 32];
                let arguments: Vec<u8> = [
                    (found.as_mut_ptr().addr() as u64).to_ne_bytes(),
                    (seen.as_mut_ptr().addr() as u64).to_ne_bytes(),
                ]
                .concat();
                let shape = LaunchShape {
                    grid: [1, 1, 1],
                    threads,
                    shared_bytes: 2 * 16384 * 4,
                    cooperative: false,
                    cluster: 1,
                };
                let launched = launch(&kernels, &code, &shape, 1, &arguments, order);
                launched.unwrap_or_else(|failed| panic!("{name}, {number}: {}", failed.what));
                let mut elements = 0;
                for lane in found.chunks_exact(8).take(threads as usize) {
                    for (member, wrong) in MEMBERS.iter().zip(lane) {
                        assert_eq!(*wrong, 0, "{member} of {number} on {name}, {order:?}");
                    }
                    elements += lane[6];
                }
                // Both warps together have every element once.
                let all = 2 * found[7];
                assert_eq!(elements, all, "{number} on {name}");
                assert!(seen[..all as usize].iter().all(|&times| times == 1), "{number} on {name}");
            }
        }
    }
}
