//! Steps of different work, and first steps that decide: every format says so before any time, and has
//! no ratio of a step.

use trace_tool::report::{
    CompareTable, trace_compare, trace_compare_csv, trace_compare_html, trace_compare_json,
};

use super::example;

/// What a step would say, if it were the same work: 1.2 times as fast.
const OF_A_STEP: &str = "a pass, H100";

#[test]
fn the_text_opens_with_it() {
    let comparison = example::of_other_tokens();
    let text = trace_compare(example::report(&comparison));
    let first = text.split("\n\n").next().unwrap().replace('\n', " ");
    assert!(first.starts_with("MI300X and H100 did not do the same work: tokens 32 against 64;"));
    assert!(first.contains("for a token MI300X takes"), "{first}");
    assert!(!text.contains(OF_A_STEP), "{text}");
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what}: {text}"));
    assert!(place("the same work?") < place("Work that is alike"));
    assert!(place("Work that is alike") < place("Where the gap"));
    assert!(place("1024x2816") < place("Where the gap"));
}

#[test]
fn the_page_opens_with_it() {
    let comparison = example::of_other_tokens();
    let page = trace_compare_html(example::report(&comparison));
    let place = |what: &str| page.find(what).unwrap_or_else(|| panic!("no {what}"));
    assert!(place("did not do the same work: tokens 32 against 64") < place("The same work?"));
    assert!(place("Operators with the same sizes") < place("Where the gap of"));
    assert!(!page.contains(OF_A_STEP));
    let same = trace_compare_html(example::report(&example::comparison()));
    assert!(!same.contains("The same work?") && !same.contains("#work"));
}

#[test]
fn programs_find_it() {
    let comparison = example::of_other_tokens();
    let json = trace_compare_json(example::report(&comparison)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["same_work"]["headline"], "for_a_token");
    assert_eq!(json["same_work"]["questions"][1]["answer"], "different");
    assert!(json["gap"]["ratio"].is_null());
    assert!(json["verdict"].as_str().unwrap().contains("did not do the same work"));
    let statuses = json["operations"].as_array().unwrap().iter().map(|one| &one["status"]);
    assert!(statuses.into_iter().all(|status| status == "not_comparable"));

    let table = |table| {
        let csv = trace_compare_csv(example::report(&comparison), table).unwrap();
        String::from_utf8(csv).unwrap()
    };
    let work = table(CompareTable::Work);
    assert!(work.lines().nth(1).unwrap().starts_with("verdict,,,,for_a_token,"), "{work}");
    assert!(work.contains("tokens,,32,64,different,"), "{work}");
    assert!(work.contains("for_a_token,,"), "{work}");
    let matched = table(CompareTable::Matched);
    assert!(matched.contains("mm,\"[32x1024, 1024x2816]\",230,460,"), "{matched}");
    let operations = table(CompareTable::Operations);
    assert!(operations.contains(",not_comparable,"), "{operations}");
    assert!(!operations.contains(",slower,") && !operations.contains(",faster,"));
}

#[test]
fn a_first_step_that_decides() {
    let comparison = example::of_usual_steps();
    let text = trace_compare(example::report(&comparison));
    let first = text.split("\n\n").next().unwrap().replace('\n', " ");
    let words =
        "MI300X has a first step 20 times as long as others with the same work; for a usual";
    assert!(first.starts_with(words), "{first}");
    assert!(first.contains("no difference to speak of"), "{first}");
    assert!(!text.contains(OF_A_STEP) && !text.contains("Work that is alike"), "{text}");
    let page = trace_compare_html(example::report(&comparison));
    assert!(page.contains(words) && !page.contains("Operators with the same sizes"));
    let json = trace_compare_json(example::report(&comparison)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["same_work"]["headline"], "of_usual_steps");
    assert!(json["gap"]["ratio"].is_null());
    let statuses = json["operations"].as_array().unwrap().iter().map(|one| &one["status"]);
    assert!(statuses.into_iter().all(|status| status == "not_comparable"));
}
