//! Prints the ceilings that are measured on this machine.
//!
//! `cargo run --release -p fused-kernels --example ceilings -- [THREADS] [bound] [DTYPE]`

use std::time::Instant;

use fused_kernels::cpu::Cpu;
use fused_kernels::{Backend, BackendError, clock_tick};
use fusion_cost_model::{Clock, DType};

fn main() -> Result<(), BackendError> {
    let mut threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (mut bound, mut dtype) = (false, DType::F32);
    for argument in std::env::args().skip(1) {
        match (argument.parse(), argument.parse()) {
            (Ok(number), _) => threads = number,
            (_, Ok(named)) => dtype = named,
            _ => bound = argument == "bound",
        }
    }
    let mut cpu = if bound { Cpu::with_bound_threads(threads) } else { Cpu::new(threads) }?;
    match cpu.pinned() {
        Some(processors) => println!("{threads} threads on processors {processors:?}"),
        None => println!("{threads} threads, free"),
    }
    println!("clock tick {:?}", clock_tick());

    let start = Instant::now();
    let Some(ceilings) = cpu.ceilings(dtype, Clock::Host, 3, &mut |_| {})? else {
        return Ok(());
    };
    println!("measured in {:.2} s", start.elapsed().as_secs_f64());
    println!("peak {:.1} GFLOP/s, launch {:.3} us", ceilings.peak_gflops, ceilings.launch_us);
    println!("\n{:>13} {:>10} {:>10} {:>10}", "working set", "add", "streamed", "read");
    println!("{:>13} {:>10} {:>10} {:>10}", "KiB", "GB/s", "GB/s", "GB/s");
    for point in ceilings.bandwidth {
        let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{rate:.1}"));
        println!(
            "{:>13.1} {:>10.1} {:>10} {:>10}",
            point.working_set_bytes as f64 / 1024.0,
            point.gb_per_s,
            rate(point.nontemporal_gb_per_s),
            rate(point.read_gb_per_s),
        );
    }
    Ok(())
}
