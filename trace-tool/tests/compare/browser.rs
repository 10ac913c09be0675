//! The page in a browser that shows nothing on a screen.

use trace_tool::report::trace_compare_html;

use super::headless::{Page, between};
use super::{example, page};

#[test]
fn a_browser_shows_what_the_comparison_says() {
    let comparison = example::comparison();
    let Some(page) = Page::new(&trace_compare_html(example::report(&comparison))) else { return };
    let document = page.document();
    let waterfall = between(&document, "<ol class=\"waterfall\"", "</ol>")[0];
    let names = between(waterfall, "<span class=\"name\">", "</span>");
    let mut expected = vec!["MI300X"];
    expected.extend(comparison.gap.causes.iter().map(|cause| cause.name.as_str()));
    expected.push("H100");
    assert_eq!(names, expected);
    assert_eq!(between(waterfall, "<rect class=\"bar ", ">").len(), expected.len());
    let spoken = between(waterfall, "role=\"img\" aria-label=\"", "\"");
    assert_eq!(spoken[1], "GEMM: gate_up: +2.53 ms, MI300X takes longer, 148 % of the gap");
    let sentences = between(&document, "<ol class=\"causes\">", "</ol>")[0];
    let sentences = between(sentences, "<li>", "</li>");
    let expected: Vec<&str> =
        comparison.gap.causes.iter().map(|cause| cause.sentence.as_str()).collect();
    assert_eq!(sentences, expected);

    let kinds = between(&document, "<details", "</details>");
    assert_eq!(kinds.len(), 2);
    assert!(kinds[0].starts_with(" open") && !kinds[1].starts_with(" open"));
    for (kind, shown) in comparison.layers.kinds.iter().zip(&kinds) {
        let bodies = between(shown, "<tbody>", "</tbody>");
        assert_eq!(between(bodies[0], "<tr", "</tr>").len(), kind.slots.len());
        // A bar for each kernel, and a mark for each side without one.
        let slots = kind.slots.iter().flat_map(|slot| [&slot.first, &slot.second]);
        let kernels = slots.filter(|kernel| kernel.is_some()).count();
        assert_eq!(between(bodies[0], "<rect class=\"bar ", ">").len(), kernels);
        let absent = between(bodies[0], "<text class=\"absent\"", "</text>");
        assert_eq!(absent.len(), 2 * kind.slots.len() - kernels);
    }
    assert_eq!(between(&document, "<article class=\"finding\" id=\"fusion-1\"", ">").len(), 1);
    assert!(document.contains("href=\"#fusion-1\""));

    page.is_shown_at(&[[1280, 2000], [420, 2000]], &[]);
}

#[test]
fn a_browser_runs_nothing_that_a_name_says() {
    let hostile = page::hostile();
    let Some(page) = Page::new(&trace_compare_html(example::report(&hostile))) else { return };
    let document = page.document();
    assert!(!document.contains("<script") && !document.contains("<img"));
    assert!(!document.contains("<title>broken"));
    // Everything behind the names is still there.
    assert_eq!(between(&document, "<section id=\"", "\"").last(), Some(&"reading"));
    assert!(document.trim_end().ends_with("</html>"));
}
