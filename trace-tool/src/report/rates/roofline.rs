//! The roofline: what kernels reach at their intensity, under what the machine allows.

use kernel_traces::rates::{Machine, Rate};
use maud::{Markup, html};

use super::{percent, three_digits, time};

/// The size of the drawing in its own units.
const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 440.0;

/// Room for the labels of the axes.
const LEFT: f64 = 70.0;
const BELOW: f64 = 45.0;
const ABOVE: f64 = 15.0;

/// A place on logarithmic axes: FLOP per byte, and GFLOP/s.
struct Axes {
    x: [f64; 2],
    y: [f64; 2],
}

impl Axes {
    /// Whole powers of ten around all that is shown.
    fn around(points: impl Iterator<Item = (f64, f64)>) -> Option<Self> {
        let (mut x, mut y) = ([f64::MAX, f64::MIN], [f64::MAX, f64::MIN]);
        for (intensity, rate) in points {
            for (range, value) in [(&mut x, intensity.log10()), (&mut y, rate.log10())] {
                *range = [range[0].min(value.floor()), range[1].max(value.ceil())];
            }
        }
        let is_range = |[low, high]: [f64; 2]| low.is_finite() && high.is_finite() && low <= high;
        let wide = |[low, high]: [f64; 2]| [low, high.max(low + 1.0)];
        (is_range(x) && is_range(y)).then(|| Self { x: wide(x), y: wide(y) })
    }

    fn x(&self, intensity: f64) -> f64 {
        let part = (intensity.log10() - self.x[0]) / (self.x[1] - self.x[0]);
        LEFT + part * (WIDTH - LEFT - 10.0)
    }

    fn y(&self, rate: f64) -> f64 {
        let part = (rate.log10() - self.y[0]) / (self.y[1] - self.y[0]);
        HEIGHT - BELOW - part * (HEIGHT - BELOW - ABOVE)
    }
}

/// The powers of ten of a range, not more than fit.
fn powers([low, high]: [f64; 2]) -> Vec<f64> {
    let step = ((high - low) / 8.0).ceil().max(1.0);
    let mut powers = Vec::new();
    let mut power = low;
    while power <= high && powers.len() < 10 {
        powers.push(10_f64.powf(power));
        power += step;
    }
    powers
}

/// The drawing; none if no kernel computes something that is known. The number of a point is that
/// of its row.
pub(super) fn roofline(rates: &[Rate], machine: Option<&Machine>) -> Option<Markup> {
    let points: Vec<(usize, &Rate, f64, f64)> = rates
        .iter()
        .zip(1..)
        .filter_map(|(rate, number)| Some((number, rate, rate.intensity?, rate.tflop_per_s? * 1e3)))
        .collect();
    if points.is_empty() {
        return None;
    }
    let dtypes: Vec<&str> = points.iter().filter_map(|(_, rate, ..)| rate.dtype).collect();
    let peaks: Vec<(&str, f64, f64)> = machine
        .iter()
        .flat_map(|machine| {
            let bandwidth = machine.bandwidth_gb_per_s;
            machine.peaks.iter().map(move |(dtype, peak)| (dtype.name(), *peak, *peak / bandwidth))
        })
        .filter(|(dtype, ..)| dtypes.contains(dtype))
        .collect();
    let corners = peaks.iter().map(|(_, peak, corner)| (*corner, *peak));
    let shown = points.iter().map(|(_, _, intensity, rate)| (*intensity, *rate));
    let axes = Axes::around(shown.chain(corners))?;
    let (left, right) = (10_f64.powf(axes.x[0]), 10_f64.powf(axes.x[1]));
    let floor = 10_f64.powf(axes.y[0]);
    Some(html! {
        svg.roofline viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img"
            aria-label="Rates of kernels over their intensity, under the roofline of the machine" {
            @for power in powers(axes.x) {
                line.grid x1=(axes.x(power)) x2=(axes.x(power)) y1=(ABOVE) y2=(HEIGHT - BELOW) {}
                text x=(axes.x(power)) y=(HEIGHT - BELOW + 16.0) text-anchor="middle" {
                    (short(power))
                }
            }
            @for power in powers(axes.y) {
                line.grid x1=(LEFT) x2=(WIDTH - 10.0) y1=(axes.y(power)) y2=(axes.y(power)) {}
                text x=(LEFT - 6.0) y=(axes.y(power) + 4.0) text-anchor="end" { (short(power / 1e3)) }
            }
            text x=(WIDTH / 2.0) y=(HEIGHT - 8.0) text-anchor="middle" { "FLOP per byte" }
            text x="4" y="12" { "TFLOP/s" }
            @if let Some(machine) = machine {
                @for (dtype, peak, corner) in &peaks {
                    @let begin = left.max(floor / machine.bandwidth_gb_per_s);
                    @if begin < *corner {
                        line.roof x1=(axes.x(begin)) y1=(axes.y(begin * machine.bandwidth_gb_per_s))
                            x2=(axes.x(*corner)) y2=(axes.y(*peak)) {}
                    }
                    line.roof x1=(axes.x(corner.max(left))) y1=(axes.y(*peak))
                        x2=(axes.x(right)) y2=(axes.y(*peak)) {}
                    text x=(WIDTH - 14.0) y=(axes.y(*peak) - 4.0) text-anchor="end" { (dtype) }
                }
            }
            @for (number, rate, intensity, gflops) in &points {
                circle.point cx=(axes.x(*intensity)) cy=(axes.y(*gflops)) r="6" {
                    title {
                        (format!(
                            "{number}: {}, {} TFLOP/s, {} FLOP per byte, {}{}",
                            rate.class,
                            three_digits(gflops / 1e3),
                            three_digits(*intensity),
                            time(rate.total_ns),
                            rate.of_roofline.map_or_else(String::new, |part| {
                                format!(", {} of the roofline", percent(part))
                            })
                        ))
                    }
                }
                text.number x=(axes.x(*intensity) + 9.0) y=(axes.y(*gflops) + 4.0) { (number) }
            }
        }
    })
}

/// A power of ten as the axes write it.
fn short(value: f64) -> String {
    if (0.001..100_000.0).contains(&value) { format!("{value}") } else { format!("{value:e}") }
}
