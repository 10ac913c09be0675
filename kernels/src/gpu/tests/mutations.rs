//! Kernels made wrong on purpose, one change at a time: the emulation must see every one of them.
//!
//! What survives shows what the conformance suite does not look at.

use std::fmt::Write as _;

use fusion_cost_model::Problem;

use super::emulation::{Failure, Headers, Order, compiler, failures, failures_on};
use crate::gpu::{DeviceFacts, HEADERS};

/// A change of a header.
#[derive(Debug, Clone)]
struct Mutation {
    header: &'static str,
    /// Its text before.
    from: &'static str,
    /// Which of the places with this text, from 0 on.
    nth: usize,
    to: &'static str,
}

/// The kernels of a header: small problems, each on an architecture, that together go through all
/// of it.
type Checks = &'static [(&'static str, &'static [&'static str])];

const ROWS: Checks = &[(
    "gfx942",
    &[
        "add+layer_norm+bias+relu/f32/m5.n5000",
        "softmax+scale/f16/m13.n129",
        "add+rms_norm/f32/m5.n5000",
        // Rows that are read in parts, and rows without a deviation.
        "add+rms_norm/f32/m2.n20000",
        "layer_norm+sigmoid/f32/m3.n1",
        // Its softmax alone.
        "attention_output/f32/b1.h2.q5.kv7.d3.causal1",
    ],
)];
const POINTWISE: Checks = &[(
    "sm_80",
    &[
        "scale+hardsigmoid+mul+dropout+tanh/f32/m31.n333",
        "batch_norm+relu/bf16/m9.n200",
        "batch_norm+relu/f32/m7.n333",
        "add_relu/f32/m31.n333",
    ],
)];
const GEMM: Checks = &[
    (
        "sm_80",
        &[
            "linear_bias_relu/f32/m130.k65.n67",
            "linear_bias_relu/f16/m130.k200.n136",
            "linear_bias_relu/f16/m130.k24.n136",
        ],
    ),
    ("gfx942", &["linear_bias_relu/bf16/m33.k129.n67"]),
];
const CONV: Checks = &[(
    "sm_80",
    &[
        "conv2d+bias+hardswish/f16/n2.c3.h9.w11.k18.r3.s3.pad1",
        "conv2d+bias+hardswish/f32/n2.c19.h8.w9.k19.r5.s3.stride2.pad2.groups19",
        "conv2d+bias/f32/n2.c5.h9.w8.k7.r3.s2.stride2.pad1",
        "conv2d+bias+relu6+max_pool+add+tanh/f32/n2.c3.h9.w11.k18.r3.s3.pad1",
    ],
)];
const MAX_POOL: Checks = &[(
    "sm_80",
    &["conv2d+bias+relu6+max_pool+add+tanh/f32/n1.c2.h13.w10.k17.r3.s3.pad1.pool3.pstride2.ppad1"],
)];
const ATTENTION: Checks = &[
    (
        "sm_80",
        &[
            "attention_head/f16/b2.h2.q65.kv131.d16",
            "qk+scale+add+softmax+dropout+pv+add/f32/b2.h3.q17.kv70.d7",
            "attention_scores/f32/b1.h2.q33.kv70.d8",
            "attention_head/f16/b1.h1.q65.kv70.d128",
            "attention_head/f16/b2.h4.q130.kv131.d16.kvh2.causal1",
            "attention_scores/f32/b1.h2.q33.kv70.d8.causal1",
            // A single key in the last step, and one less than a step has.
            "attention_head/f32/b1.h1.q2.kv64.d16.causal1",
            "attention_head/f32/b1.h1.q3.kv63.d8",
        ],
    ),
    ("gfx942", &["attention_head/bf16/b1.h2.q65.kv131.d33"]),
];
const PLAIN: Checks =
    &[("gfx1030", &["linear_bias_relu/f32/m33.k35.n67", "attention_head/f32/b1.h1.q65.kv131.d16"])];
const MMA: Checks =
    &[("sm_80", &["linear_bias_relu/f16/m64.k64.n64", "attention_head/f16/b1.h1.q65.kv70.d16"])];
const MFMA: Checks =
    &[("gfx942", &["linear_bias_relu/f16/m64.k64.n64", "attention_head/bf16/b1.h1.q65.kv70.d16"])];
const WMMA: Checks = &[
    ("gfx1100", &["linear_bias_relu/f16/m64.k64.n64", "attention_head/f16/b1.h1.q65.kv70.d16"]),
    ("gfx1201", &["linear_bias_relu/bf16/m64.k64.n64", "attention_head/f16/b1.h1.q65.kv70.d16"]),
];
const GRID: Checks =
    &[("gfx942", &["linear+bias+add+layer_norm/f32/m130.k16.n67", "mlp/f32/m65.k33.n129.o17"])];

/// What uses a header.
const FAMILIES: [(&str, Checks); 14] = [
    ("rows.h", ROWS),
    ("pointwise.h", POINTWISE),
    ("gemm.h", GEMM),
    ("gemm/operands.h", GEMM),
    ("conv.h", CONV),
    ("max_pool.h", MAX_POOL),
    ("attention.h", ATTENTION),
    ("attention/copy.h", ATTENTION),
    ("attention/store.h", ATTENTION),
    ("together.h", GRID),
    ("matrix_core/plain.h", PLAIN),
    ("matrix_core/mma.h", MMA),
    ("matrix_core/mfma.h", MFMA),
    ("matrix_core/wmma.h", WMMA),
];

/// Barriers whose absence the problems above were not seen to show, by their header, text, and
/// which of them it is.
const UNSEEN: [(&str, &str, usize); 3] = [
    // Only for warps that stage more than one row of cores.
    ("gemm.h", "sync_warp();", 1),
    // Before results are staged where values were read.
    ("attention.h", "sync_block();", 4),
    // Whether a block arrives at the grid barrier before its last thread does.
    ("together.h", "sync_block();", 0),
];

const fn change(header: &'static str, from: &'static str, to: &'static str) -> Mutation {
    Mutation { header, from, nth: 0, to }
}

/// Edges, scales, sums, fragments, warp widths.
fn changes() -> Vec<Mutation> {
    vec![
        // Edges.
        change("rows.h", "const bool is_row = row < rows;", "const bool is_row = row <= rows;"),
        change("rows.h", "* (LANES * V) < cols; }", "* (LANES * V) <= cols; }"),
        change("rows.h", "so_far = place.inside(c) ? with : so_far;", "so_far = with;"),
        change("pointwise.h", "inside[c] = places[c].at < elements;", "inside[c] = true;"),
        change("pointwise.h", "single < elements) {", "single < elements - 1) {"),
        change("gemm/operands.h", "index < rows ? base", "index <= rows ? base"),
        change("gemm/operands.h", "col.at < cols ?", "col.at <= cols ?"),
        change("gemm/operands.h", "inside = col + Copy::col() < source.cols;", "inside = true;"),
        change("gemm/operands.h", "row < rows ? from", "row <= rows ? from"),
        change("gemm.h", "row + r >= rows_count ||", "row + r > rows_count ||"),
        change("gemm.h", "|| col + c >= cols_count) continue;", ") continue;"),
        change("conv.h", "u32(row.y + col.y) < u32(h)", "u32(row.y + col.y) <= u32(h)"),
        change("conv.h", "u32(row.x + col.x) < u32(w)", "u32(row.x + col.x) <= u32(w)"),
        change("conv.h", "if (u32(x) < u32(w)) {", "if (u32(x) <= u32(w)) {"),
        change("conv.h", "if (first + p >= out_w) break;", ""),
        change("conv.h", "place.image * h + y", "place.image * pixels.out_h + y"),
        change("conv.h", "image * h * w * channels", "image * out_h * out_w * channels"),
        change("conv.h", "const int top = y < 0 ? -y : 0,", "const int top = 0,"),
        change("conv.h", "first >= rows_count ||", "first > rows_count ||"),
        change("max_pool.h", "if (at >= elements) return;", "if (at > elements) return;"),
        change("max_pool.h", "clamp(y + r, 0, sizes.height - 1)", "clamp(y + r, 0, sizes.height)"),
        change("max_pool.h", "clamp(x + s, 0, sizes.width - 1)", "(x + s)"),
        change("attention.h", "if (col >= keys_left)", "if (col > keys_left)"),
        change("attention.h", "if (first_key + S::KEYS <=", "if (first_key <="),
        change("attention.h", "<= problem.key_count) return;", "<= problem.key_count + 1) return;"),
        change(
            "attention.h",
            "<= problem.seen_by(first_row)) return;",
            "<= problem.seen_by(first_row) + 1) return;",
        ),
        change("attention/copy.h", "col < cols ? rows - row : 0;", "rows - row;"),
        change("attention/store.h", "if (row >= rows ||", "if (row > rows ||"),
        // Masks, and whose keys a head has.
        change("rows.h", "keys - queries + query + 1;", "keys - queries + query;"),
        change("rows.h", "keys - queries + query + 1;", "query + 1;"),
        change("attention.h", "if (col >= limit + row)", "if (col > limit + row)"),
        change("attention.h", "if (col >= limit + row)", "if (col >= limit)"),
        change("attention.h", "key_count - query_count + query + 1;", "query + 1;"),
        change(
            "attention.h",
            "<= problem.seen_by(first_row)) return;",
            "<= problem.key_count) return;",
        ),
        change(
            "attention.h",
            "? seen_by(end - 1) : key_count;",
            "? seen_by(end - 1) - 1 : key_count;",
        ),
        change("attention.h", "return matrix / sharing;", "return matrix;"),
        // Scales, sums and what becomes of them.
        change("gemm.h", "sums[i][j].x[x] = 0;", "sums[i][j].x[x] = 1;"),
        change("gemm.h", "tail.template apply<V>(x, at_row, at_col);", ""),
        change("conv.h", "before.template apply<V>(x, pixels.row(first + element), at_col);", ""),
        change("conv.h", "after.template apply<V>(most, at_row, at_col);", ""),
        change("conv.h", "x[v] : max(most[v], x[v]);", "x[v] : most[v];"),
        change("rows.h", "x[c][i] *= scale;", ";"),
        change("rows.h", "+ epsilon);", ");"),
        change("rows.h", "port::fma(x, LOG2_E, -offset)", "port::fma(x, 1.0f, -offset)"),
        change("attention.h", "rows.sum[tile][r] *= shrink;", ""),
        change("attention.h", "rows.output[tile][n].x[i] *= shrink;", ";"),
        change("attention.h", "multiply_rows(rows.output, reciprocal);", ""),
        change("attention.h", "problem.scale * LOG2_E : LOG2_E;", "LOG2_E : LOG2_E;"),
        change("attention.h", "rows.scores[tile][n] = {};", ";"),
        change("attention.h", "apply(after, first);", ""),
        change("attention.h", "apply(before, first_key);", ""),
        // Copies that no thread waits for.
        change("gemm.h", "copy_async_wait<STAGES - 2>();", ""),
        change("gemm.h", "copy_async_wait<STAGES - 2>();", "copy_async_wait<STAGES - 1>();"),
        change("attention.h", "port::copy_async_wait<0>();", ""),
        // Fragments.
        change("matrix_core/plain.h", "lane() % LANE_COLS * 4 + i % 4;", "lane() % LANE_COLS * 4;"),
        change("matrix_core/mma.h", "lane() / 4 + i / 2 % 2 * 8;", "lane() / 4 + i % 2 * 8;"),
        change("matrix_core/mma.h", "+ i % 2 + i / 4 * 8;", "+ i % 2;"),
        change("matrix_core/mma.h", "{ return i / 2 % 2; }", "{ return i % 2; }"),
        change("matrix_core/mma.h", "lane() / 8 % 2 * 8);", "lane() / 8 % 2 * 4);"),
        change("matrix_core/mfma.h", "lane() / 16 * 4 + i;", "lane() / 16 * 4 + (i ^ 1);"),
        change("matrix_core/wmma.h", "? 2 * i + lane() / 16 :", "? 2 * i :"),
        change("matrix_core/wmma.h", ": lane() / 16 * 8 + i;", ": lane() / 16 * 8;"),
        // The width of a warp, where it is 64.
        change("rows.h", "LANES / port::WARP;", "LANES / 32;"),
        change("gemm.h", "i < COUNT; i += WARP) {", "i < COUNT; i += 2 * WARP) {"),
        change("attention/store.h", "index += port::WARP) {", "index += 2 * port::WARP) {"),
        change("together.h", "int mask = LANES / 2; mask > 0;", "int mask = LANES / 2; mask > 1;"),
        change("together.h", "(blocks()) - 1", "(blocks())"),
    ]
}

/// Every barrier left out.
fn without_barriers() -> Vec<Mutation> {
    let mut mutations = Vec::new();
    for (header, _) in FAMILIES {
        for from in ["sync_block();", "sync_warp();"] {
            let count = text_of(header).matches(from).count();
            for nth in 0..count {
                // Whatever stands before it, such as `port::`, is then the beginning of this.
                mutations.push(Mutation { header, from, nth, to: "thread();" });
            }
        }
    }
    mutations
}

fn text_of(header: &str) -> &'static str {
    HEADERS.iter().find(|(name, _)| *name == header).map(|(_, text)| *text).unwrap()
}

impl Mutation {
    fn headers(&self) -> Option<Headers> {
        let text = text_of(self.header);
        let (at, _) = text.match_indices(self.from).nth(self.nth)?;
        let mutated = format!("{}{}{}", &text[..at], self.to, &text[at + self.from.len()..]);
        let all = HEADERS.iter().map(|&(name, text)| {
            let text = if name == self.header { mutated.clone() } else { text.to_owned() };
            (name.to_owned(), text)
        });
        Some(Headers::new(all.collect()))
    }

    fn line(&self) -> usize {
        let text = text_of(self.header);
        let at = text.match_indices(self.from).nth(self.nth).map_or(0, |(at, _)| at);
        text[..at].lines().count()
    }

    /// What is wrong with it as a mutation, if the emulation does not see it.
    fn survives(&self) -> Option<String> {
        let Self { header, from, to, .. } = self;
        let Some(headers) = self.headers() else {
            return Some(format!("{header} has no `{from}` any more"));
        };
        let (_, checks) = FAMILIES.iter().find(|(name, _)| name == header).unwrap();
        // One problem after another: what the first one shows, the others need not be compiled for.
        for (architecture, problems) in *checks {
            for text in *problems {
                let problem: Problem =
                    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
                let orders = [Order::Forward, Order::Reverse, Order::Shuffled(1)];
                let found = failures(&[problem], architecture, &headers, &orders);
                let Some(first) = found.first() else { continue };
                let first = first.to_string();
                let compiles =
                    |failure: &Failure| !failure.to_string().contains("does not compile");
                if found.iter().any(compiles) {
                    return None;
                }
                return Some(format!("{header}, `{from}` as `{to}`: {first}"));
            }
        }
        Some(format!("{header}:{}: `{from}` as `{to}` goes unnoticed", self.line()))
    }
}

fn expect_none_to_survive(mutations: &[Mutation]) {
    if compiler().is_none() {
        return;
    }
    let next = std::sync::Mutex::new(mutations.iter());
    let survivors = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let Some(mutation) = next.lock().unwrap().next() else { break };
                    if let Some(why) = mutation.survives() {
                        survivors.lock().unwrap().push(why);
                    }
                }
            });
        }
    });
    let survivors = survivors.into_inner().unwrap();
    let mut text = String::new();
    for survivor in &survivors {
        let _ = writeln!(text, "{survivor}");
    }
    assert!(survivors.is_empty(), "{} of {} survive:\n{text}", survivors.len(), mutations.len());
}

/// Makes each change of a header by itself, and sees that the kernels of a problem are wrong then: for
/// what only shows on a device of few processors. Returns the first thing that is wrong with each.
pub(crate) fn expect_missed(
    header: &str,
    problem: &str,
    changes: &[(&str, &str)],
    device: &DeviceFacts,
    orders: &[Order],
) -> Vec<String> {
    if compiler().is_none() {
        return Vec::new();
    }
    let problem = [problem.parse().unwrap()];
    let mut first = Vec::new();
    for &(from, to) in changes {
        let change = |(name, text): &(&str, &str)| {
            let changed = *name == header;
            assert!(!changed || text.matches(from).count() == 1, "`{from}`");
            let text = if changed { text.replace(from, to) } else { (*text).to_owned() };
            ((*name).to_owned(), text)
        };
        let headers = Headers::new(HEADERS.iter().map(change).collect());
        let found = failures_on(&problem, device, &headers, orders);
        let found = found.first().map(ToString::to_string);
        let found = found.unwrap_or_else(|| panic!("`{from}` as `{to}` goes unnoticed"));
        assert!(!found.contains("does not compile"), "`{from}` as `{to}`: {found}");
        first.push(found);
    }
    first
}

/// Or everything would be seen.
#[test]
fn without_a_change_nothing_is_wrong() {
    for (_, checks) in FAMILIES {
        for (architecture, problems) in checks {
            let problems: Vec<Problem> =
                problems.iter().map(|text| text.parse().unwrap()).collect();
            super::emulation::check_all(&problems, architecture);
        }
    }
}

/// Every barrier left out whose absence can be seen.
fn barriers() -> Vec<Mutation> {
    let mut barriers = without_barriers();
    barriers.retain(|barrier| !UNSEEN.contains(&(barrier.header, barrier.from, barrier.nth)));
    barriers
}

/// The first of each header.
fn one_of_each_header(mutations: &[Mutation]) -> Vec<Mutation> {
    let first =
        FAMILIES.iter().map(|(header, _)| mutations.iter().find(|one| one.header == *header));
    first.flatten().cloned().collect()
}

#[test]
fn every_change_has_its_place() {
    for mutation in changes().iter().chain(&barriers()) {
        assert!(mutation.headers().is_some(), "{mutation:?}");
    }
}

#[test]
fn a_change_of_each_header_is_seen() {
    let changes = one_of_each_header(&changes());
    assert_eq!(changes.len(), FAMILIES.len());
    expect_none_to_survive(&changes);
}

#[test]
fn a_missing_barrier_of_each_header_is_seen() {
    expect_none_to_survive(&one_of_each_header(&barriers()));
}

#[test]
#[ignore = "compiles kernels for each of the changes: minutes; ALL_ARCHITECTURES=1 .ci/run runs it"]
fn every_change_is_seen_by_all_architectures() {
    expect_none_to_survive(&changes());
}

#[test]
#[ignore = "compiles kernels for each of the barriers: minutes; ALL_ARCHITECTURES=1 .ci/run runs it"]
fn every_missing_barrier_is_seen_by_all_architectures() {
    expect_none_to_survive(&barriers());
}
