//! Traces of models, maps and numbers of passes of any shape.

use serde_json::{Value, json};

use super::*;

#[test]
fn the_process_of_the_model() {
    let choose = |events: &Value, wanted: Option<&str>| {
        let found = ModelTrace::from_json(events.to_string().as_bytes(), "m.json", wanted);
        found
            .map(|found| (found.process.id, codes(&found.warnings)))
            .map_err(|error| error.to_string())
    };
    let chosen = |id: &str, codes: &[&'static str]| Ok((id.to_owned(), codes.to_vec()));
    // Also behind events, and where a number is text.
    let two = json!([
        of_process(1),
        of_process("7"),
        of_process("7"),
        process(1, "analytic (PID: 1)"),
        process(7, "EMPIRICAL (PID: 7)")
    ]);
    assert_eq!(choose(&two, None), chosen("7", &[]));
    assert_eq!(choose(&two, Some("1")), chosen("1", &[]));
    assert_eq!(choose(&two, Some("Analytic")), chosen("1", &[]));
    assert_eq!(choose(&json!({"traceEvents": two, "other": [1]}), None), chosen("7", &[]));
    let error = choose(&two, Some("roofline")).unwrap_err();
    assert_eq!(
        error,
        "m.json: no process with events is called `roofline`; there are: `analytic (PID: 1)` \
         (pid 1, 1 event), `EMPIRICAL (PID: 7)` (pid 7, 2 events)"
    );
    let error = choose(&two, Some("(pid")).unwrap_err();
    assert!(error.contains("several processes with events are called `(pid`"), "{error}");
    let both =
        json!([process(2, "profiling b"), process(1, "empirical a"), of_process(1), of_process(2)]);
    assert_eq!(choose(&both, None), chosen("2", &["several-processes"]));
    // A name without events is not a model.
    let named = json!([process(3, "profiling"), process(1, "a"), of_process(1)]);
    assert_eq!(choose(&named, None), chosen("1", &["process-by-default"]));
    let neither = json!([process(1, "a"), of_process(1), of_process(2)]);
    let error = choose(&neither, None).unwrap_err();
    assert!(error.ends_with("name one of these: `a` (pid 1, 1 event), pid 2 (1 event)"), "{error}");
    for nothing in [json!([]), json!({"traceEvents": []}), json!([process(1, "profiling")])] {
        assert!(choose(&nothing, None).unwrap_err().contains("it predicts nothing"));
    }
}

#[test]
fn what_is_no_model_trace() {
    let whole = json!({"traceEvents": [event("op", 1, json!({"kernel_type": "A"}))]}).to_string();
    let load = |bytes: &[u8]| ModelTrace::from_json(bytes, "m.json", None);
    assert!(load(whole.as_bytes()).is_ok());
    for end in 0..whole.len() {
        let error = load(&whole.as_bytes()[..end]).unwrap_err().to_string();
        assert!(error.contains("m.json is not a trace of a performance model"), "{error}");
    }
    for (bytes, reason) in [
        (&b" "[..], "it is empty"),
        (b"{}", "missing field `traceEvents`"),
        (b"{\"traceEvents\": 3}", "invalid type"),
        (b"[{\"ph\": \"X\", \"dur\": NaN}]", "line 1 column"),
        (b"[{\"ph\": \"X\", \"name\": \"\xff\"}]", "invalid unicode"),
        (b"Type,Duration(us)\n", "expected value"),
    ] {
        let error = load(bytes).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn maps_of_any_shape() {
    let read = |yaml: &str| OpMap::from_yaml(yaml, Rules::Own).unwrap();
    let map = read(
        "version: 1\noperator_mappings:\n  a: {kernel_type: A, alternate_kernel_types: [B], new: 1}\n  \
         b: {zero_cost: true}\nc: {kernel_type: C}\n",
    );
    assert_eq!((map.len(), &map.warnings[..]), (3, &[][..]));
    assert_eq!((map.kernel_type("torch.ops.a"), map.kernel_type("c")), (Some("A"), Some("C")));
    assert!(
        map.is_zero_cost("b") && !map.is_zero_cost("a") && !map.is_zero_cost("operator_mappings")
    );
    let both = read("a: {kernel_type: Flat}\noperator_mappings: {a: {kernel_type: Nested}}\n");
    assert_eq!(both.kernel_type("a"), Some("Nested"));
    let odd = read(
        "operator_mappings:\n  a: 3\n  b: {kernel_type: [X]}\n  c: {zero_cost: perhaps}\n  \
         d: {kernel_type: ' '}\n  e: {query_mode: x}\n  f: {kernel_type: F}\n",
    );
    assert_eq!(odd.len(), 1);
    assert_eq!(codes(&odd.warnings), ["bad-map-entry"; 4]);
    for nothing in ["", "# nothing\n", "version: 3\n", "operator_mappings:\n", "{}"] {
        assert_eq!(read(nothing).warnings, [InputWarning::EmptyMap], "{nothing:?}");
    }
    for (yaml, reason) in [
        ("- a\n", "its top level is not a mapping"),
        ("text", "its top level is not a mapping"),
        ("operator_mappings: [a]\n", "`operator_mappings` is not a mapping"),
        ("a: [1\n", "line 1"),
        ("a: {kernel_type: A}\na: {kernel_type: B}\n", "duplicate mapping key: a"),
    ] {
        let error = OpMap::from_yaml(yaml, Rules::Own).unwrap_err();
        assert!(error.contains(reason) && !error.contains('\n'), "{error}");
    }
    let last = OpMap::from_yaml("a: {kernel_type: A}\na: {kernel_type: B}\n", Rules::Original);
    assert_eq!(last.unwrap().kernel_type("a"), Some("B"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("map.yaml");
    std::fs::write(&path, b"a: \xff\n").unwrap();
    let error = OpMap::load(&path, Rules::Own).unwrap_err().to_string();
    assert!(error.contains("it is not UTF-8, from byte 3 on"), "{error}");
}

#[test]
fn passes_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m6.json");
    let read = |text: &str, rules| {
        std::fs::write(&path, text).unwrap();
        Passes::load(&path, rules).map(Passes::get).map_err(|error| error.to_string())
    };
    assert_eq!(read("\u{feff}{\"n_forward_passes\": 2}", Rules::Own), Ok(2));
    assert_eq!(read("{\"n_forward_passes\": 3.0}", Rules::Own), Ok(3));
    assert_eq!(read("{\"m6_ratio\": 0.9}", Rules::Own), Ok(1));
    assert_eq!(read("{\"n_forward_passes\": 0}", Rules::Original), Ok(0));
    for (text, reason) in [
        ("{\"n_forward_passes\": 0}", "n_forward_passes is 0; it must be 1 or more"),
        ("{\"n_forward_passes\": -1}", "n_forward_passes is -1; it must be a whole number"),
        ("{\"n_forward_passes\": 1.5}", "it must be a whole number"),
        ("{\"n_forward_passes\": \"2\"}", "it must be a whole number"),
        ("[2]", "it is not a JSON object"),
        ("", "it is not JSON"),
    ] {
        let error = read(text, Rules::Own).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
    let missing = Passes::load(folder.path().join("no.json"), Rules::Own).unwrap_err();
    assert!(missing.to_string().contains("cannot read"), "{missing}");
}
