//! Pages and tables of comparisons.

use calibrate::report::{CompareReport, CompareTable};
use cli_support::width::Width;
use fusion_cost_model::CacheState;
use proptest::prelude::*;

use super::made::{compare, monday, other, report, tuesday};
use crate::headless;

#[test]
fn two_machines_on_pages_of_several_widths() {
    let comparison = compare(&monday(), &[&other()]);
    let report = report(&comparison);
    insta::assert_snapshot!("machines_80", report.text(None, Width::Columns(80)));
    insta::assert_snapshot!("machines_140", report.text(None, Width::Columns(140)));
    insta::assert_snapshot!("machines_unlimited", report.text(None, Width::Unlimited));
    insta::assert_snapshot!("machines_markdown", report.markdown(None));
    let table = Some(CompareTable::NotCompared);
    insta::assert_snapshot!("machines_not_compared", report.text(table, Width::Columns(80)));
}

#[test]
fn the_same_machine_on_pages_of_several_widths() {
    let comparison = compare(&monday(), &[&tuesday()]);
    let report = CompareReport { fail_on: Some(0.05), ..report(&comparison) };
    insta::assert_snapshot!("same_80", report.text(None, Width::Columns(80)));
    insta::assert_snapshot!("same_140", report.text(None, Width::Columns(140)));
    let table = Some(CompareTable::Records);
    insta::assert_snapshot!("same_records", report.text(table, Width::Columns(120)));
}

#[test]
fn a_conclusion_says_in_which_state_the_caches_were() {
    let mut first = monday();
    let mut cold = first.records[8].clone();
    cold.cache_state = CacheState::Cold;
    first.records.push(cold);
    let mut second = first.clone();
    let lost = second.records.last_mut().unwrap();
    lost.speedup_factor *= 0.8;
    lost.speedup_low *= 0.8;
    lost.speedup_high *= 0.8;
    let text = report(&compare(&first, &[&second])).text(None, Width::Unlimited);
    let name = "add_relu/f32/m4096.n1024 cold (B / A 0.800)";
    let expected = format!("1 problem gains less from fusion now, {name}");
    assert!(text.contains(&expected), "{text}");
}

#[test]
fn three_sides_on_a_page() {
    let comparison = compare(&monday(), &[&tuesday(), &other()]);
    insta::assert_snapshot!("three_100", report(&comparison).text(None, Width::Columns(100)));
}

#[test]
fn tables_for_programs_have_what_json_has() {
    let comparison = compare(&monday(), &[&other()]);
    let report = report(&comparison);
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    assert_eq!((&json["kind"], &json["version"]), (&"calibration-comparison".into(), &1.into()));
    assert_eq!(json["sides"][1]["target"], "cpu/2/f32/native");
    for (table, key) in [
        (CompareTable::Records, "pairs"),
        (CompareTable::Families, "families"),
        (CompareTable::Patterns, "patterns"),
        (CompareTable::SingleOps, "single_ops"),
        (CompareTable::NotCompared, "not_compared"),
        (CompareTable::Ceilings, "sides"),
    ] {
        let text = String::from_utf8(report.csv(table).unwrap()).unwrap();
        let rows = text.lines().count() - 1;
        let mut expected = json[key].as_array().unwrap().len();
        if table == CompareTable::NotCompared {
            let sides = json["sides"].as_array().unwrap().iter();
            let others = sides.map(|side| side["other_targets"].as_array().unwrap().len());
            expected += others.sum::<usize>();
        }
        assert_eq!(rows, expected, "{key}\n{text}");
        assert!(rows > 0, "{key}");
    }
    let records = String::from_utf8(report.csv(CompareTable::Records).unwrap()).unwrap();
    insta::assert_snapshot!("records_csv", records);
    let first = &json["pairs"][0];
    assert!(records.contains(&first["ratio"]["value"].as_f64().unwrap().to_string()));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    /// No line is wider than the page but for names that no page of that width could have.
    #[test]
    fn no_line_is_too_wide(columns in 80_usize..200, seed in 0.5_f64..2.0) {
        let mut changed = tuesday();
        for (index, record) in changed.records.iter_mut().enumerate() {
            let factor = seed.powi(i32::try_from(index % 3).unwrap());
            record.speedup_factor *= factor;
            record.speedup_low *= factor;
            record.speedup_high *= factor;
        }
        for second in [changed, other()] {
            let comparison = compare(&monday(), &[&second]);
            let text = report(&comparison).text(None, Width::Columns(columns));
            for line in text.lines() {
                let is_name = line.contains("conv_bn_relu_maxpool") || line.contains("ppad1");
                prop_assert!(line.chars().count() <= columns || is_name, "{line}\n{text}");
            }
        }
    }
}

#[test]
fn the_page_says_what_the_tables_say_and_runs_nothing() {
    let mut second = other();
    "<script>alert(1)</script>".clone_into(&mut second.hardware.name);
    let comparison = compare(&monday(), &[&second, &tuesday()]);
    let page = report(&comparison).html();
    let in_lower_case = page.to_lowercase();
    for forbidden in ["http://", "https://", "<script", "<link", "<img", "@import", "javascript:"] {
        assert!(!in_lower_case.contains(forbidden), "{forbidden}");
    }
    assert!(page.contains("&lt;script&gt;") && page.contains("default-src 'none'"));
    assert_eq!(page.matches("<circle").count(), comparison.pairs.len());
    for pair in &comparison.pairs {
        let [low, high] = pair.ratio.interval.unwrap();
        let figure = format!("{:.3} [{low:.3}, {high:.3}]", pair.ratio.value);
        // Once read aloud, once where a pointer rests, once beside the point, once in the table.
        assert!(page.matches(&figure).count() >= 4, "{}: {figure}", pair.problem);
        assert!(page.contains(&format!("aria-label=\"{}: {figure}", pair.problem)));
    }
    let times = page.split("id=\"times\"").nth(1).and_then(|rest| rest.split("</section>").next());
    let times = times.expect("what the machine changed has a section");
    let moved = comparison.pairs.iter().filter(|pair| pair.moved.is_some());
    let moved = moved.map(|pair| &pair.problem);
    let singles = comparison.single_ops.iter().map(|single| &single.problem);
    assert!(!comparison.single_ops.is_empty());
    for problem in moved.chain(singles) {
        let name = problem.to_string();
        let (heading, sizes) = name.rsplit_once('/').unwrap();
        assert!(times.contains(heading) && times.contains(sizes), "{name}");
    }
    for group in &comparison.families {
        let conclusion = group.conclusion.as_ref().unwrap().replace('<', "&lt;");
        assert!(page.contains(&conclusion.replace('>', "&gt;")), "{conclusion}");
    }
}

#[test]
fn a_browser_shows_every_pair_and_says_nothing_on_its_console() {
    let comparison = compare(&monday(), &[&other()]);
    let Some(page) = headless::Page::new(&report(&comparison).html()) else { return };
    let document = page.document();
    let rows = headless::between(&document, "<li class=\"row\">", "</li>");
    assert_eq!(rows.len(), comparison.pairs.len());
    page.is_shown_at(&[[1280, 2000], [500, 2000]], &[]);
}
