//! The page, without a browser.

use kernel_traces::compare::{Comparison, Role};
use trace_tool::report::{CompareReport, trace_compare_html};

use super::example;

/// What breaks out of a template that does not escape.
pub(super) const HOSTILE: &str = "</title></script><script>document.title='broken'</script>\"'><img src=x \
                           onerror=alert(1)> &amp; \u{1}\0 \u{202e}";

/// A comparison in which every name is hostile.
pub(super) fn hostile() -> Comparison {
    let mut comparison = example::comparison();
    let name = |more: &str| format!("{HOSTILE}{more}");
    comparison.first.label = name(" first");
    comparison.first.name = name(".json");
    comparison.first.gpu = name(" gpu");
    comparison.fusions[0].fused_kernel = name("");
    comparison.fusions[0].operation = name("");
    comparison.fusions[0].evidence = name("");
    comparison.fusions[0].separate = vec![name(""); 2];
    comparison.fusions[0].separate_kernels = vec![name(&"x".repeat(10_000)); 2];
    comparison.implementation[0].sentence = name("");
    comparison.same_kernels[0].kernel = name("");
    comparison.warnings[0].message = name("");
    comparison.gap.classes[0].class = name("");
    for cause in &mut comparison.gap.causes {
        cause.name = name("");
        cause.sentence = name("");
    }
    for slot in &mut comparison.layers.kinds[0].slots {
        for kernel in [&mut slot.first, &mut slot.second].into_iter().flatten() {
            kernel.kernel = name(&"y".repeat(10_000));
            kernel.class = name("");
        }
    }
    for row in &mut comparison.kernels {
        row.kernel = name(&"z".repeat(10_000));
    }
    comparison
}

#[test]
fn nothing_comes_from_elsewhere_and_nothing_runs() {
    let comparison = example::comparison();
    let page = trace_compare_html(example::report(&comparison));
    let page_in_lower_case = page.to_lowercase();
    for forbidden in ["http://", "https://", "<script", "<link", "<img", "@import", "javascript:"] {
        assert!(!page_in_lower_case.contains(forbidden), "{forbidden}");
    }
    // The hatching of the page itself.
    assert_eq!((page.matches("url(").count(), page.matches("url(#hatch)").count()), (1, 1));
    let handlers = page.split(" on").skip(1).filter(|rest| {
        rest.trim_start_matches(|character: char| character.is_ascii_alphabetic()).starts_with('=')
    });
    assert_eq!(handlers.count(), 0);
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn hostile_names_are_text() {
    let comparison = hostile();
    let page = trace_compare_html(example::report(&comparison));
    assert!(!page.contains("<script") && !page.contains("<img"));
    assert!(page.contains("&lt;script&gt;"));
    assert!(!page.contains('\0') && !page.contains('\u{1}'));
    assert!(page.len() < 1_000_000, "{}", page.len());
}

#[test]
fn a_large_comparison_is_a_small_page() {
    let mut comparison = example::comparison();
    let long = "void at::native::elementwise_kernel<".repeat(280);
    let slots: Vec<_> = (0..500)
        .map(|at| {
            let kernel = |class| Some(example::kernel(class, &long, 10.0));
            let mut slot = example::slot(Role::Qkv, kernel("GEMM"), kernel("ELEMENTWISE"));
            slot.slot = at;
            slot
        })
        .collect();
    comparison.layers.kinds = (0..200)
        .map(|number| {
            let mut kind = comparison.layers.kinds[0].clone();
            kind.kind = number;
            kind.slots.clone_from(&slots);
            kind
        })
        .collect();
    let mut row = comparison.kernels[0].clone();
    row.kernel.clone_from(&long);
    comparison.kernels = vec![row; 5_000];
    let mut cause = comparison.gap.causes[0].clone();
    cause.sentence.clone_from(&long);
    cause.name.clone_from(&long);
    comparison.gap.causes = vec![cause; 2_000];
    comparison.fusions = vec![comparison.fusions[0].clone(); 1_000];
    comparison.implementation = vec![comparison.implementation[0].clone(); 1_000];
    comparison.same_kernels = vec![comparison.same_kernels[0].clone(); 1_000];
    comparison.warnings = vec![comparison.warnings[0].clone(); 100];
    for top in [1, 10, 100_000] {
        let page = trace_compare_html(CompareReport { top, ..example::report(&comparison) });
        assert!(page.len() < 1_000_000, "{top}: {}", page.len());
        assert!(page.contains("more; --top N shows more"), "{top}");
    }
}

#[test]
fn measured_records_stand_beside_their_fusion() {
    let comparison = example::comparison();
    let without = trace_compare_html(example::report(&comparison));
    assert!(!without.contains("Measured:"));
    let records = example::records(&comparison);
    let page =
        trace_compare_html(CompareReport { records: &records, ..example::report(&comparison) });
    assert!(page.contains("Measured: </b>xeon.toml (Intel(R) Xeon(R) Processor): add_layernorm"));
}
