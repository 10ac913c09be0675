//! Barriers, TMA and `wgmma` of sm_90a as kernels use them, one by one, on the emulation
//! of their definitions; and that the emulation finds what would be wrong on a device.

use half::{bf16, f16};

use super::compile::{Headers, Kernels, compiler};
use super::device::device;
use super::launch::{Order, launch};
use crate::gpu::{Code, LaunchShape};

const ORDERS: [Order; 3] = [Order::Forward, Order::Reverse, Order::Shuffled(1)];

/// Matrices in memory, and the boxes that are copied of them.
#[derive(Clone, Copy)]
struct Map {
    matrices: usize,
    rows: usize,
    cols: usize,
    box_rows: usize,
}

#[repr(align(64))]
struct Matrices([u16; 8192]);

/// Numbers that are all different, as f16 or bf16 has them.
fn number(index: usize) -> f32 {
    ((index * 37) % 251) as f32 / 16.0 - 7.5
}

/// Runs a kernel with 128 threads, or more, on matrices with [`number`]s, and returns what it
/// left in `args.y`.
fn run(
    name: &str,
    dtype: &str,
    body: &str,
    map: Map,
    threads: u32,
    order: Order,
) -> Result<Vec<f32>, String> {
    let device = device("sm_90a");
    let text = format!(
        "#include \"hopper/wgmma.h\"\nusing T = port::{dtype};\nusing namespace port::hopper;\n\
         struct Args {{ TensorMap map; const T* x; float* y; }};\n\
         PORT_KERNEL({name}, Args, {threads}) {{\n{body}\n}}\n"
    );
    let code = Code { entry: name.to_owned(), text };
    let kernels = Kernels::of([&code], &device.architecture, &Headers::shipped());
    let mut matrices = Box::new(Matrices([0; 8192]));
    for (index, x) in matrices.0.iter_mut().enumerate() {
        *x = match dtype {
            "f16" => f16::from_f32(number(index)).to_bits(),
            _ => bf16::from_f32(number(index)).to_bits(),
        };
    }
    let mut y = vec![f32::NAN; 64 * 256];
    let address = matrices.0.as_ptr().addr();
    let mut words = [0; 18];
    words[..6].copy_from_slice(&[address, map.matrices, map.rows, map.cols, map.box_rows, 64]);
    words[16..].copy_from_slice(&[address, y.as_mut_ptr().addr()]);
    // The kernel wants its map at a multiple of 64 bytes.
    #[repr(align(64))]
    struct Arguments([u8; 192]);
    let mut arguments = Arguments([0; 192]);
    for (word, place) in words.iter().zip(arguments.0.chunks_exact_mut(8)) {
        place.copy_from_slice(&(*word as u64).to_ne_bytes());
    }
    let shape = LaunchShape {
        grid: [1, 1, 1],
        threads,
        shared_bytes: 64 << 10,
        cooperative: false,
        cluster: 1,
    };
    launch(&kernels, &code, &shape, 1, &arguments.0, order).map_err(|failed| failed.what)?;
    Ok(y)
}

/// One box at these coordinates, and every thread's share of it in `y`, row by row.
fn copy(col: i32, row: i32, matrix: i32, map: Map) -> Vec<f32> {
    let body = format!(
        "u64* barrier = reinterpret_cast<u64*>(port::shared() + 32768);\n\
         if (port::thread() == 0) {{ barrier_init(barrier, 1); publish_barriers(); }}\n\
         port::sync_block();\n\
         if (port::thread() == 0) {{\n  \
           barrier_arrive_expect(barrier, {bytes});\n  \
           copy_box(port::shared() + 1024, args.map, {col}, {row}, {matrix}, barrier);\n}}\n\
         barrier_wait(barrier, 0);\n\
         for (int i = port::thread(); i < {bytes} / 2; i += 128) {{\n  \
           const int row = i / 64, col = i % 64;\n  \
           const u8* at = port::shared() + 1024 + row * 128 + (col / 8 ^ row % 8) * 16 + \
           col % 8 * 2;\n  \
           args.y[i] = port::to_float(*reinterpret_cast<const T*>(at));\n}}",
        bytes = map.box_rows * 128,
    );
    run("copy", "f16", &body, map, 128, Order::Forward).unwrap()
}

#[test]
fn boxes_are_copied_with_the_swizzle_and_zeros_around_the_matrix() {
    if compiler().is_none() {
        return;
    }
    let map = Map { matrices: 3, rows: 20, cols: 72, box_rows: 16 };
    for (col, row, matrix) in [(0, 0, 0), (64, 0, 1), (0, 16, 2), (64, 16, 1), (-8, -3, 1)] {
        let found = copy(col, row, matrix, map);
        for index in 0..16 * 64_i32 {
            let (r, c) = (row + index / 64, col + index % 64);
            let inside = (0..20).contains(&r) && (0..72).contains(&c);
            let expected = if inside { number(((matrix * 20 + r) * 72 + c) as usize) } else { 0.0 };
            let place = (col, row, matrix, index);
            assert_eq!(found[index as usize].to_bits(), expected.to_bits(), "{place:?}");
        }
    }
}

/// A box of numbers from 100 on is stored at these coordinates, and then all of memory is in `y`.
fn store(col: i32, row: i32, matrix: i32, map: Map) -> Vec<f32> {
    let body = format!(
        "u8* box = port::shared() + 1024;\n\
         for (int i = port::thread(); i < {rows} * 64; i += 128) {{\n  \
           const int row = i / 64, col = i % 64;\n  \
           u8* at = box + row * 128 + (col / 8 ^ row % 8) * 16 + col % 8 * 2;\n  \
           *reinterpret_cast<T*>(at) = port::from_float<T>(100.0f + i);\n}}\n\
         fence_async_proxy();\nport::sync_block();\n\
         if (port::thread() == 0) {{\n  \
           store_box(args.map, {col}, {row}, {matrix}, box);\n  wait_for_stores();\n}}\n\
         port::sync_block();\n\
         for (int i = port::thread(); i < 8192; i += 128) args.y[i] = port::to_float(args.x[i]);",
        rows = map.box_rows,
    );
    run("store", "f16", &body, map, 128, Order::Reverse).unwrap()
}

#[test]
fn boxes_are_stored_from_the_swizzle_and_nothing_around_the_matrix() {
    if compiler().is_none() {
        return;
    }
    let map = Map { matrices: 3, rows: 20, cols: 72, box_rows: 16 };
    for (col, row, matrix) in [(0, 0, 0), (64, 0, 1), (0, 16, 2), (64, 16, 1), (-8, -3, 1)] {
        let mut expected: Vec<f32> =
            (0..8192).map(|index| f16::from_f32(number(index)).to_f32()).collect();
        for index in 0..16 * 64_i32 {
            let (r, c) = (row + index / 64, col + index % 64);
            if (0..20).contains(&r) && (0..72).contains(&c) {
                expected[((matrix * 20 + r) * 72 + c) as usize] = 100.0 + index as f32;
            }
        }
        assert_eq!(store(col, row, matrix, map)[..8192], expected, "{col} {row} {matrix}");
    }
}

/// How the operands of a wgmma lie.
#[derive(Clone, Copy, PartialEq)]
enum A {
    Shared,
    Registers,
}

/// The wgmma of rows `8192 / 64` and so on of the numbers: A is 64 by 64 at the beginning, and B
/// begins `offset` numbers later, 64 by `n` or `n` by 64.
fn wgmma(dtype: &str, n: usize, a: A, n_major: bool, order: Order) -> Vec<f32> {
    // Operands are put where the definition wants them, by a formula of its own: 16 bytes number
    // `c` of row `r` of a box are at place `c ^ r % 8`.
    let body = format!(
        "const auto put = [&](int start, int rows, int index, T x) {{\n  \
           const int box = index / (64 * rows), row = index / 64 % rows, col = index % 64;\n  \
           u8* at = port::shared() + start + (box * rows + row) * 128 + (col / 8 ^ row % 8) * 16 \
           + col % 8 * 2;\n  *reinterpret_cast<T*>(at) = x;\n}};\n\
         for (int i = port::thread(); i < 4096; i += 128) put(0, 64, i, args.x[i]);\n\
         for (int i = port::thread(); i < 64 * {n}; i += 128) {{\n  \
           const int k = {n_major} ? i / 64 % 64 : i % 64;\n  \
           const int n = {n_major} ? i / 4096 * 64 + i % 64 : i / 64;\n  \
           put(8192, {rows}, i, args.x[(k * {n} + n) % 8191]);\n}}\n\
         fence_async_proxy();\nport::sync_block();\n\
         float c[{n} / 2];\n\
         for (float& x : c) x = 0.5f;\n\
         u32 a[4][4];\n\
         for (int step = 0; step < 4; step++)\n  for (int i = 0; i < 8; i++) {{\n    \
           const int k = 16 * step + i / 4 * 8 + port::thread() % 4 * 2 + i % 2;\n    \
           const u32 x = args.x[wgmma_row(i) * 64 + k].bits;\n    \
           if (i % 2 == 0) a[step][i / 2] = x; else a[step][i / 2] |= x << 16;\n  }}\n\
         wgmma_fence();\n\
         for (int step = 0; step < 4; step++) {{\n  \
           const u64 b = {n_major} ? n_major(port::shared() + 8192, 64) + step * NEXT_K_OF_ROWS\n    \
             : k_major(port::shared() + 8192) + step * NEXT_K;\n  \
           if ({registers}) wgmma<T, {n_major}>(c, a[step], b, 1);\n  \
           else wgmma<T, {n_major}>(c, k_major(port::shared()) + step * NEXT_K, b, 1);\n}}\n\
         wgmma_commit();\nwgmma_wait<0>();\nwgmma_keep(c);\n\
         for (int i = 0; i < {n} / 2; i++) args.y[wgmma_row(i) * {n} + wgmma_col(i)] = c[i];",
        rows = if n_major { 64 } else { n },
        n_major = u8::from(n_major),
        registers = u8::from(a == A::Registers),
    );
    let name = format!("wgmma_{n}_{dtype}_{}_{}", u8::from(n_major), u8::from(a == A::Registers));
    let map = Map { matrices: 1, rows: 1, cols: 8, box_rows: 1 };
    run(&name, dtype, &body, map, 128, order).unwrap()
}

#[test]
fn wgmma_reads_operands_where_tma_puts_them() {
    if compiler().is_none() {
        return;
    }
    for (dtype, n, order) in
        [("f16", 64, Order::Forward), ("bf16", 128, Order::Reverse), ("bf16", 256, Order::Forward)]
    {
        for (a, n_major) in [(A::Shared, true), (A::Shared, false), (A::Registers, true)] {
            let found = wgmma(dtype, n, a, n_major, order);
            for (index, &c) in found.iter().take(64 * n).enumerate() {
                let (row, col) = (index / n, index % n);
                let exact: f64 = (0..64)
                    .map(|k| {
                        let b = number((k * n + col) % 8191);
                        f64::from(number(row * 64 + k)) * f64::from(b)
                    })
                    .sum();
                let error = (f64::from(c) - exact - 0.5).abs();
                assert!(error < 1e-3, "{dtype} {n} {n_major}: {row}, {col}: {c}, not {exact}");
            }
        }
    }
}

#[test]
fn barriers_go_from_phase_to_phase() {
    if compiler().is_none() {
        return;
    }
    // A ring of two numbers between warps, gone round many times: who writes too early or reads
    // too early leaves a wrong sum.
    let body = "u64* full = reinterpret_cast<u64*>(port::shared() + 1024);\nu64* empty = full + 2;\n\
        volatile int* ring = reinterpret_cast<int*>(port::shared());\n\
        if (port::thread() == 0) for (int i = 0; i < 2; i++) {\n  \
          barrier_init(full + i, 1); barrier_init(empty + i, 96);\n}\n\
        port::sync_block();\nint sum = 0;\n\
        for (int i = 0; i < 20; i++) {\n  const u32 parity = i / 2 % 2;\n  \
          if (port::thread() == 0) {\n    barrier_wait(empty + i % 2, parity ^ 1);\n    \
            ring[i % 2] = i * i;\n    barrier_arrive(full + i % 2);\n  \
          } else if (port::thread() >= 32) {\n    barrier_wait(full + i % 2, parity);\n    \
            sum += ring[i % 2];\n    barrier_arrive(empty + i % 2);\n  }\n}\n\
        args.y[port::thread()] = sum;";
    let map = Map { matrices: 1, rows: 1, cols: 8, box_rows: 1 };
    for order in ORDERS {
        let found = run("ring", "f16", body, map, 128, order).unwrap();
        let expected: i32 = (0..20).map(|i| i * i).sum();
        assert!(found[32..128].iter().all(|&sum| sum == expected as f32), "{order:?}");
    }
}

#[test]
fn parts_of_a_block_take_turns() {
    if compiler().is_none() {
        return;
    }
    // Each of two parts appends to what the other has written; 128 threads wait and 128 do not.
    let body = "int* log = reinterpret_cast<int*>(port::shared());\n\
        const int part = port::thread() / 128;\n\
        if (port::thread() == 0) log[0] = 1;\nport::sync_block();\n\
        if (part == 1) arrive_threads(1, 256);\n\
        for (int i = 0; i < 5; i++) {\n  sync_threads(1 + part, 256);\n  \
          if (port::thread() % 128 == 5) log[0] = log[0] * 3 + part;\n  \
          arrive_threads(2 - part, 256);\n}\n\
        if (part == 0) { sync_threads(1, 256); args.y[port::thread()] = log[0]; }";
    let map = Map { matrices: 1, rows: 1, cols: 8, box_rows: 1 };
    for order in ORDERS {
        let found = run("turns", "f16", body, map, 256, order).unwrap();
        let expected = (0..10).fold(1, |log, turn| log * 3 + turn % 2);
        assert!(found[..128].iter().all(|&log| log == expected as f32), "{order:?}");
    }
}

#[test]
fn what_a_device_would_not_do_is_told() {
    if compiler().is_none() {
        return;
    }
    let begin = "u64* barrier = reinterpret_cast<u64*>(port::shared() + 32768);\n\
        if (port::thread() == 0) barrier_init(barrier, 1);\nport::sync_block();\nfloat c[32] = {};\n\
        const u64 a = k_major(port::shared()), b = n_major(port::shared() + 8192, 64);\n";
    let multiply = "wgmma_fence();\nwgmma<T, 1>(c, a, b, 1);\nwgmma_commit();\n";
    let cases = [
        ("no_fence", "wgmma<T, 1>(c, a, b, 1);".to_owned(), "without a fence"),
        (
            "overwritten",
            format!(
                "{multiply} port::sync_block();\nif (port::thread() == 9) \
                 for (int i = 0; i < 4096; i++) reinterpret_cast<u16*>(port::shared())[i] = i;\n\
                 port::sync_block();\nwgmma_wait<0>();"
            ),
            "has changed while it was under way",
        ),
        (
            "registers_overwritten",
            "u32 x[4] = {};\nwgmma_fence();\nwgmma<T, 1>(c, x, b, 1);\nwgmma_commit();\nx[2] = 1;\n\
             wgmma_wait<0>();"
                .to_owned(),
            "registers of a wgmma have changed",
        ),
        ("outside", "copy_box(port::shared() + 65536, args.map, 0, 0, 0, barrier);".to_owned(), "outside of shared"),
        ("not_aligned", "copy_box(port::shared() + 512, args.map, 0, 0, 0, barrier);".to_owned(), "where the swizzle does"),
        (
            "no_cluster",
            "barrier_arrive_at(barrier, 1);".to_owned(),
            "there is no such block in a cluster",
        ),
        ("two_arrivals", "barrier_arrive(barrier + 1);".to_owned(), "there is no barrier"),
        ("forever", "barrier_wait(barrier, 0);".to_owned(), "128 threads pause forever"),
        (
            "copies_left",
            "if (port::thread() == 0) { copy_box(port::shared(), args.map, 0, 0, 0, barrier); \
             barrier_end(barrier); }"
                .to_owned(),
            "a copy has not come yet",
        ),
        (
            "stored_and_overwritten",
            "if (port::thread() == 0) { store_box(args.map, 0, 0, 0, port::shared());\n\
             port::shared()[5] = 1; wait_for_reads<0>(); }"
                .to_owned(),
            "what a store reads has changed",
        ),
        (
            "stores_left",
            "if (port::thread() == 0) { store_box(args.map, 0, 0, 0, port::shared());\n\
             wait_for_reads<0>(); barrier_end(barrier); }"
                .to_owned(),
            "a store was not waited for",
        ),
        (
            "store_not_aligned",
            "store_box(args.map, 0, 0, 0, port::shared() + 512);".to_owned(),
            "where the swizzle does",
        ),
        (
            "registers_without_a_barrier",
            "registers_release<128>();\nregisters_acquire<256>();".to_owned(),
            "before all warps of the group have met",
        ),
        ("more_released", "registers_acquire<128>();".to_owned(), "fewer registers than before"),
        ("lanes_apart", "if (port::lane() == 3) wgmma_fence();\nelse wgmma_commit();".to_owned(), "different places"),
    ];
    let map = Map { matrices: 1, rows: 16, cols: 64, box_rows: 16 };
    for (name, body, expected) in cases {
        let error = run(name, "bf16", &format!("{begin}{body}"), map, 128, Order::Forward).err();
        let error = error.unwrap_or_else(|| panic!("{name} went well"));
        assert!(error.contains(expected), "{name}: {error}");
    }
    // Registers that nobody gives: 384 threads begin with 168.
    for (release, enough) in [("", false), ("else registers_release<40>();", true)] {
        let body = format!("if (port::thread() >= 128) registers_acquire<232>(); {release}");
        let found = run("registers", "bf16", &body, map, 384, Order::Reverse);
        assert_eq!(found.is_ok(), enough, "{found:?}");
        assert!(found.err().is_none_or(|error| error.contains("pause forever")));
    }
    // Not an error, but what the hardware may show: a result that was not waited for.
    let body = format!("{begin}{multiply} args.y[port::thread()] = c[0];\nwgmma_wait<0>();");
    let found = run("early", "bf16", &body, map, 128, Order::Forward).unwrap();
    assert!(found[..128].iter().all(|c| c.is_nan()));
    // Numbers that were not waited for.
    let body = format!(
        "{begin} if (port::thread() == 0) {{ barrier_arrive_expect(barrier, 2048);\n\
         copy_box(port::shared(), args.map, 0, 0, 0, barrier); }}\nport::sync_block();\n\
         args.y[port::thread()] = port::to_float(reinterpret_cast<T*>(port::shared())[port::thread()]);\n\
         port::sync_block();\nbarrier_wait(barrier, 0);"
    );
    let found = run("unwaited", "bf16", &body, map, 128, Order::Forward).unwrap();
    assert!(found[..128].iter().all(|x| x.is_nan()));
}
