use std::io::Write;

use super::*;

#[test]
fn ranks_in_names() {
    assert_eq!(rank_in("rank0.json.gz"), Some(0));
    assert_eq!(rank_in("trace_Rank-13_step5.json"), Some(13));
    assert_eq!(rank_in("1751410836.5-TP-7-DECODE.trace.json.gz"), Some(7));
    assert_eq!(rank_in("host_4711.1751410836123.pt.trace.json"), None);
    assert_eq!(rank_in("frank3.http4.json"), None);
    assert_eq!(rank_in("rank99999999999999999999.json"), None);
    assert_eq!(rank_in("ranks.rank2.json"), Some(2));
}

#[test]
fn names_in_their_order() {
    let mut names = ["b", "a10", "a9", "a09", "a", "a9b", "é2", "é10", "10", "9"];
    names.sort_by(|a, b| natural(a, b));
    assert_eq!(names, ["9", "10", "a", "a09", "a9", "a9b", "a10", "b", "é2", "é10"]);
}

/// A file in a folder, with the rank and the number of processes in it.
fn write(folder: &Path, name: &str, place: Option<(u64, u64)>) {
    let place = place.map_or(String::new(), |(rank, size)| {
        format!("\"distributedInfo\": {{\"rank\": {rank}, \"world_size\": {size}}}, ")
    });
    fs::write(folder.join(name), format!("{{{place}\"traceEvents\": []}}")).unwrap();
}

fn found(folder: &Path) -> Vec<(Option<u64>, String)> {
    let files = Ranks::find([folder]).unwrap().files;
    files.into_iter().map(|file| (file.rank, name_of(&file.path))).collect()
}

#[test]
fn a_folder_of_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let error = Ranks::find([path]).unwrap_err();
    assert!(matches!(error, TraceError::NoTraces { .. }), "{error}");
    fs::write(path.join("notes.txt"), "no trace").unwrap();
    write(path, "c10.json", None);
    write(path, "c9.json", None);
    write(path, "rank2.json", None);
    write(path, "rank1.json", Some((7, 8)));
    let name = str::to_owned;
    let expected = [
        (Some(2), name("rank2.json")),
        (Some(7), name("rank1.json")),
        (None, name("c9.json")),
        (None, name("c10.json")),
    ];
    assert_eq!(found(path), expected);
    let ranks = Ranks::find([path]).unwrap();
    assert_eq!(ranks.warnings, [RankWarning::MissingRanks { found: 2, world_size: 8 }]);
    assert!(ranks.bytes() > 60);

    write(path, "other.json", Some((2, 4)));
    let files = ["other.json", "rank2.json"].map(|name| path.join(name)).to_vec();
    let expected =
        [RankWarning::SameRank { rank: 2, files }, RankWarning::WorldSizes { sizes: vec![4, 8] }];
    assert_eq!(Ranks::find([path]).unwrap().warnings, expected);
    // One file of many is what people look at first.
    assert_eq!(Ranks::find([path.join("rank1.json")]).unwrap().warnings, []);

    fs::write(path.join("rank3.json"), "{}").unwrap();
    let warnings = Ranks::find([path]).unwrap().warnings;
    let Some(RankWarning::LostRanks { files }) = warnings.last() else { panic!("{warnings:?}") };
    assert_eq!(files, &[(path.join("rank3.json"), "it has no traceEvents".to_owned())]);
    let error = Ranks::find([path.join("rank3.json")]).unwrap_err().to_string();
    assert!(error.contains("rank3.json is not a profiler trace"), "{error}");
    let error = Ranks::find([path.join("no.json")]).unwrap_err().to_string();
    assert!(error.starts_with("cannot read"), "{error}");
}

#[test]
fn what_else_is_in_a_folder_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let others = ["labels.json", "settings.json"];
    for (name, text) in others.iter().zip(["{\"gemm\": 1}", "{}"]) {
        fs::write(path.join(name), text).unwrap();
    }
    // Of a folder without any trace the first says what is wrong with it.
    let error = Ranks::find([path]).unwrap_err().to_string();
    assert!(error.contains("labels.json is not a profiler trace"), "{error}");
    write(path, "rank0.json", Some((0, 1)));
    let ranks = Ranks::find([path]).unwrap();
    let files = others.map(|name| path.join(name)).to_vec();
    assert_eq!(ranks.warnings, [RankWarning::NoTraces { files }]);
    assert_eq!(ranks.files.len(), 1);
    // What is cut before its events, or in the first of them.
    for text in
        ["{", "{\"a\"", "{\"schemaVersion\": 1, \"trac", "{\"traceEvents\": [{\"ph\": \"X\""]
    {
        fs::write(path.join("cut.json"), text).unwrap();
        fs::write(path.join("rank3.json"), text).unwrap();
        let ranks = Ranks::find([path]).unwrap();
        assert_eq!(ranks.files.len(), 1, "{text}");
        let [.., RankWarning::NoTraces { files }, RankWarning::LostRanks { files: lost }] =
            &ranks.warnings[..]
        else {
            panic!("{text}: {:?}", ranks.warnings)
        };
        assert_eq!((files.len(), lost.len()), (3, 1), "{text}");
        assert!(Trace::load(path.join("cut.json"), &Options::default(), &mut |_, _| {}).is_err());
    }
    let error = Ranks::find([path.join("settings.json")]).unwrap_err().to_string();
    assert!(error.contains("settings.json is not a profiler trace"), "{error}");
}

/// However large, what has no complete event is no trace, compressed or not.
#[test]
fn large_files_without_an_event_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write(path, "rank0.json", Some((0, 2)));
    let event = "{\"traceEvents\": [{\"ph\": \"X\", \"name\": \"";
    for text in [
        "[".repeat(100_000),
        "{\"traceEvents\": ".to_owned() + &"[".repeat(3 << 20),
        "[".to_owned() + &"1,".repeat(50_000),
        event.to_owned() + &"k".repeat(200_000),
        event.to_owned() + &"k".repeat(6 << 20),
    ] {
        for is_packed in [false, true] {
            let mut bytes = text.clone().into_bytes();
            if is_packed {
                let fast = flate2::Compression::none();
                let mut packed = flate2::write::GzEncoder::new(Vec::new(), fast);
                packed.write_all(&bytes).unwrap();
                bytes = packed.finish().unwrap();
            }
            fs::write(path.join("rank1.json"), bytes).unwrap();
            let ranks = Ranks::find([path]).unwrap();
            let shown = (&text[..40], text.len(), is_packed);
            assert_eq!(ranks.files.len(), 1, "{shown:?}");
            let lost: Vec<&RankWarning> = ranks.warnings.iter().collect();
            let is_lost = |one: &&&RankWarning| matches!(one, RankWarning::LostRanks { files } if files[0].0 == path.join("rank1.json"));
            assert_eq!(lost.iter().filter(is_lost).count(), 1, "{shown:?}: {lost:?}");
        }
    }
    // One event is enough, also behind a long one that is broken.
    let one = format!(
        "[{{\"ph\": \"X\", \"name\": \"{}\" b\"}}, {{\"ph\": \"M\"}}, ",
        "k".repeat(100_000)
    );
    fs::write(path.join("rank1.json"), one).unwrap();
    assert_eq!(Ranks::find([path]).unwrap().files.len(), 2);
}

#[test]
fn compressed_files_need_more_memory() {
    let folder = tempfile::tempdir().unwrap();
    let memory = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let file = RankFile::of(path).unwrap();
        RankFile { bytes: 1000, ..file }.memory_bytes()
    };
    assert_eq!(memory("plain.json", b"[]"), 300);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(b"[]").unwrap();
    assert_eq!(memory("packed.json", &packed.finish().unwrap()), 6300);
}
