//! The emulation itself: that it computes, and that it finds what is wrong.

use super::compile::{Headers, Kernels, compiler};
use super::device::device;
use super::launch::{Order, launch};
use crate::gpu::{Code, LaunchShape};

const ORDERS: [Order; 5] =
    [Order::Forward, Order::Reverse, Order::Shuffled(1), Order::Shuffled(2), Order::Shuffled(3)];

/// Runs a kernel with the body on an array of 64-bit numbers, and returns the array.
fn run(
    name: &str,
    body: &str,
    warp: u32,
    shape: LaunchShape,
    order: Order,
) -> Result<Vec<i64>, String> {
    let mut device = device("sm_80");
    device.architecture.warp = warp;
    let text = format!(
        "#include \"port.h\"\nstruct Args {{ i64* y; u32* counters; }};\nPORT_KERNEL({name}, Args, \
         256) {{\n{body}\n}}\n"
    );
    let code = Code { entry: name.to_owned(), text };
    let kernels = Kernels::of([&code], &device.architecture, &Headers::shipped());
    let mut numbers = vec![-1_i64; 4096];
    let mut counters = [0_u32; 2];
    let mut arguments = Vec::new();
    arguments.extend((numbers.as_mut_ptr().addr() as u64).to_ne_bytes());
    arguments.extend((counters.as_mut_ptr().addr() as u64).to_ne_bytes());
    let blocks = u64::from(shape.grid[0]);
    launch(&kernels, &code, &shape, blocks, &arguments, order).map_err(|failed| failed.what)?;
    Ok(numbers)
}

fn shape(blocks: u32, threads: u32, shared_bytes: u32) -> LaunchShape {
    LaunchShape { grid: [blocks, 1, 1], threads, shared_bytes, cooperative: false, cluster: 1 }
}

/// Runs it in all orders and returns the errors.
fn errors(name: &str, body: &str, shape: LaunchShape) -> Vec<String> {
    ORDERS.iter().filter_map(|&order| run(name, body, 32, shape, order).err()).collect()
}

#[test]
fn threads_know_who_they_are() {
    if compiler().is_none() {
        return;
    }
    let body = "if (port::thread() == 0) args.y[0] = port::blocks() * 1000 + port::threads();\n\
                args.y[1 + port::block() * port::threads() + port::thread()] = \
                port::block() * 1000000 + port::warp() * 1000 + port::lane();";
    for warp in [32, 64] {
        for order in ORDERS {
            let found = run("who", body, warp, shape(3, 192, 0), order).unwrap();
            assert_eq!(found[0], 3192);
            for index in 0..3 * 192_i64 {
                let (block, thread, warp) = (index / 192, index % 192, i64::from(warp));
                let expected = block * 1_000_000 + thread / warp * 1000 + thread % warp;
                assert_eq!(found[1 + index as usize], expected);
            }
        }
    }
}

/// Every thread gives its number to the next one, many times; without the second barrier a quick
/// thread overwrites what a slow one has yet to read, without the first one it reads too early.
fn rotation(first: &str, second: &str) -> String {
    format!(
        "int* x = reinterpret_cast<int*>(port::shared());\nint mine = port::thread();\n\
         for (int i = 0; i < 10; i++) {{\n  x[port::thread()] = mine;\n  {first};\n  \
         mine = x[(port::thread() + 1) % port::threads()];\n  {second};\n}}\n\
         args.y[port::thread()] = mine;"
    )
}

#[test]
fn barriers_order_what_threads_do_and_missing_ones_show() {
    if compiler().is_none() {
        return;
    }
    let barrier = "port::sync_block()";
    let cases = [
        ("both", barrier, barrier, true),
        ("first_missing", "", barrier, false),
        ("second_missing", barrier, "", false),
        ("only_warps", barrier, "port::sync_warp()", false),
    ];
    for warp in [32, 64] {
        for (name, first, second, right) in cases {
            let body = rotation(first, second);
            let rights = ORDERS[..2].iter().map(|&order| {
                let found = run(name, &body, warp, shape(1, 256, 1024), order).unwrap();
                (0..256).all(|thread| found[thread] == (thread as i64 + 10) % 256)
            });
            assert_eq!(rights.min(), Some(right), "{name} {warp}");
        }
    }
}

#[test]
fn lanes_give_each_other_numbers() {
    if compiler().is_none() {
        return;
    }
    let body = "float sum = float(port::lane());\n\
                for (int mask = port::WARP / 2; mask > 0; mask /= 2) \
                sum += port::shuffle_xor(sum, mask);\n\
                float last = port::shuffle(float(port::thread()), port::WARP - 1);\n\
                const i64* all = port::host::gather(i64(port::thread()));\n\
                i64 gathered = 0;\n\
                for (int lane = 0; lane < port::WARP; lane++) gathered += all[lane] * (lane + 1);\n\
                args.y[port::thread() * 3] = i64(sum);\n\
                args.y[port::thread() * 3 + 1] = i64(last);\n\
                args.y[port::thread() * 3 + 2] = gathered;";
    for warp in [32_i64, 64] {
        for order in ORDERS {
            let found = run("lanes", body, warp as u32, shape(1, 256, 0), order).unwrap();
            for thread in 0..256_i64 {
                let first = thread / warp * warp;
                let gathered: i64 = (0..warp).map(|lane| (first + lane) * (lane + 1)).sum();
                let expected = [warp * (warp - 1) / 2, first + warp - 1, gathered];
                assert_eq!(found[thread as usize * 3..][..3], expected, "{warp} {order:?}");
            }
        }
    }
}

#[test]
fn blocks_of_a_cooperative_launch_wait_for_each_other() {
    if compiler().is_none() {
        return;
    }
    // Each block reads what all others wrote.
    let body = "const i64 blocks = port::blocks();\n\
                for (int round = 0; round < 3; round++) {\n\
                  if (port::thread() == 7) args.y[round * 100 + port::block()] = port::block() + 1;\n\
                  port::sync_grid(args.counters);\n\
                  i64 sum = 0;\n\
                  for (i64 i = 0; i < blocks; i++) sum += args.y[round * 100 + i];\n\
                  if (port::thread() == 9) args.y[1000 + round * 100 + port::block()] = sum;\n\
                }";
    for order in ORDERS {
        for blocks in [1, 2, 7] {
            let shape = LaunchShape { cooperative: true, ..shape(blocks, 64, 64) };
            let found = run("grid", body, 32, shape, order).unwrap();
            let sum = i64::from(blocks * (blocks + 1) / 2);
            for round in 0..3 {
                for block in 0..blocks as usize {
                    assert_eq!(found[1000 + round * 100 + block], sum, "{order:?} {blocks}");
                }
            }
        }
    }
    // Blocks one after the other can never meet.
    let error = run("grid", body, 32, shape(2, 64, 64), Order::Forward).unwrap_err();
    assert!(error.contains("1 threads pause forever"), "{error}");
}

#[test]
fn what_is_wrong_is_told() {
    if compiler().is_none() {
        return;
    }
    let cases = [
        ("ends", "if (port::thread() != 5) port::sync_block();", "1 threads have ended"),
        (
            "lanes_apart",
            "if (port::lane() < 3) port::sync_warp();\n else port::sync_block();",
            "wait for their warp",
        ),
        (
            "other_lines",
            "if (port::lane() < 3) port::shuffle(1, 1);\n else port::shuffle(1, 1);",
            "wait at different places",
        ),
        (
            "other_barriers",
            "if (port::thread() < 128) port::sync_block();\n else port::sync_block();",
            "wait at different barriers",
        ),
        ("no_lane", "port::shuffle_xor(1, port::WARP);", "there is no such lane"),
        ("behind", "port::shared()[500 + port::thread()] = 1;", "0 bytes behind the 512 bytes"),
        ("nowhere", "*reinterpret_cast<int*>(8 + port::threads()) = 1;", "accessed at 0x108"),
        ("zero", "args.y[0] = args.y[1] / (port::blocks() - 1);", "a division by zero"),
        ("forever", "while (args.y[0] == -1) port::pause();", "256 threads pause forever"),
        (
            "deep",
            "volatile char big[126900];\n big[0] = big[126899] = 1;\n args.y[0] = big[0];",
            "bytes of stack",
        ),
    ];
    for (name, body, expected) in cases {
        let errors = errors(name, body, shape(1, 256, 512));
        assert_eq!(errors.len(), ORDERS.len(), "{name}");
        for error in errors {
            assert!(error.contains(expected), "{name}: {error}");
            assert!(error.starts_with(&format!("{name}, block 0: ")), "{error}");
        }
    }
}

#[test]
fn launches_that_cannot_be_are_refused() {
    if compiler().is_none() {
        return;
    }
    for (threads, expected) in [(0, "whole warps"), (48, "whole warps"), (512, "compiled for 256")]
    {
        let error = run("empty", "", 32, shape(1, threads, 0), Order::Forward).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let error = run("syntax", "no such thing", 32, shape(1, 32, 0), Order::Forward).unwrap_err();
    assert!(error.contains("does not compile"), "{error}");
}

#[test]
fn shared_memory_is_aligned_and_not_a_number_at_the_start_of_a_block() {
    if compiler().is_none() {
        return;
    }
    let body = "float* x = reinterpret_cast<float*>(port::shared());\n\
                bool fresh = x[port::thread()] != x[port::thread()];\n\
                args.y[port::block() * 64 + port::thread()] = \
                fresh && reinterpret_cast<u64>(x) % 1024 == 0;\n\
                x[port::thread()] = 1;";
    let found = run("fresh", body, 32, shape(4, 64, 256), Order::Forward).unwrap();
    assert_eq!(found[..256], [1; 256]);
}
