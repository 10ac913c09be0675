use serde_json::{Value, json};

use super::*;
use crate::synthetic::{self, Annotation, Oddity, Plan};
use crate::{NameClasses, Options};

const TABLES: [Table; 5] =
    [Table::Kernels, Table::Launches, Table::Annotations, Table::Ops, Table::Frames];

fn trace(oddities: &[Oddity]) -> Trace {
    let plan = Plan { layers: 3, oddities: oddities.to_vec(), ..Plan::default() };
    let text = synthetic::text(&plan).unwrap().0;
    Trace::from_json(&text, &Options::default()).unwrap()
}

/// A trace with one kernel, whose name needs quotes, and the operator that launched it.
fn one() -> Trace {
    let text = br#"[
        {"ph": "X", "cat": "cpu_op", "name": "aten::layer_norm", "pid": "p", "tid": 2, "ts": 1,
         "dur": 2, "args": {"External id": 9}},
        {"ph": "X", "cat": "gpu_memcpy", "name": "a, \"b\"\nc", "pid": 0, "tid": 7, "ts": 3,
         "dur": 0.5, "args": {"External id": 9, "correlation": 18446744073709551615}}]"#;
    Trace::from_json(text, &Options::default()).unwrap()
}

fn written(table: Table, extent: Extent, format: RowFormat, rows: &[Rows<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = RowWriter::new(table, extent, format, &mut out).unwrap();
    for rows in rows {
        writer.write(rows).unwrap();
    }
    writer.finish().unwrap();
    out
}

fn objects(table: Table, extent: Extent, rows: &[Rows<'_>]) -> Vec<Value> {
    let text = String::from_utf8(written(table, extent, RowFormat::Json, rows)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The rows of a CSV file as objects of texts.
fn records(text: &[u8]) -> Vec<Value> {
    let mut reader = csv::Reader::from_reader(text);
    let header = reader.headers().unwrap().clone();
    let object = |record: csv::StringRecord| {
        let members = header.iter().zip(&record).filter(|(_, value)| !value.is_empty());
        members.map(|(name, value)| (name.to_owned(), json!(value))).collect()
    };
    reader.records().map(|record| Value::Object(object(record.unwrap()))).collect()
}

/// The same object with all its values as texts, without those that are empty.
fn as_texts(object: &Value) -> Value {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let members = object.as_object().unwrap().iter().map(|(name, value)| (name, text(value)));
    let there = members.filter(|(_, text)| !text.is_empty());
    Value::Object(there.map(|(name, text)| (name.clone(), json!(text))).collect())
}

#[test]
fn a_row_of_each_format() {
    let trace = one();
    let rows = [Rows::whole(&trace, "t.json", Some(3))];
    assert_eq!(
        String::from_utf8(written(Table::Kernels, Extent::Whole, RowFormat::Csv, &rows)).unwrap(),
        "file,rank,start_ns,duration_ns,device,stream,kind,class,label,name,correlation,\
         external_id,graph_node,op,phase,step,pass,layer\r\n\
         t.json,3,3000,500,0,7,memcpy,NORM,NORM,\"a, \"\"b\"\"\nc\",18446744073709551615,9,,\
         aten::layer_norm,,,,\r\n"
    );
    assert_eq!(
        objects(Table::Kernels, Extent::Whole, &rows),
        [json!({
            "file": "t.json", "rank": 3, "start_ns": 3000, "duration_ns": 500, "device": 0,
            "stream": 7, "kind": "memcpy", "class": "NORM", "label": "NORM",
            "name": "a, \"b\"\nc", "correlation": u64::MAX, "external_id": 9,
            "op": "aten::layer_norm",
        })]
    );
    let rows = [Rows::whole(&trace, "t.json", None)];
    assert_eq!(
        objects(Table::Ops, Extent::Whole, &rows),
        [json!({
            "file": "t.json", "start_ns": 1000, "duration_ns": 2000, "process": "p",
            "thread": "2", "name": "aten::layer_norm", "external_id": 9,
        })]
    );
}

#[test]
fn kernels_tell_their_step_and_layer() {
    let plan = Plan { layers: 3, annotations: vec![Annotation::Vllm], ..Plan::default() };
    let (text, truth) = synthetic::text(&plan).unwrap();
    let trace = Trace::from_json(&text, &Options::default()).unwrap();
    let rows = [Rows::whole(&trace, "t", None)];
    let objects = objects(Table::Kernels, Extent::Whole, &rows);
    let of = |key: &str| objects.iter().filter_map(|row| row.get(key).cloned()).collect::<Vec<_>>();
    assert_eq!(of("step").len(), truth.kernels.len());
    assert_eq!(of("step").iter().filter_map(Value::as_u64).max(), Some(1));
    assert_eq!(
        (of("phase").first(), of("phase").last()),
        (Some(&json!("prefill")), Some(&json!("decode")))
    );
    let mut layers: Vec<u64> = of("layer").iter().filter_map(Value::as_u64).collect();
    layers.dedup();
    assert_eq!(layers, [0, 1, 2, 0, 1, 2]);
    assert_eq!(of("pass").len(), of("layer").len());
}

#[test]
fn a_table_without_rows_has_its_header() {
    let trace = one();
    let rows = [Rows::whole(&trace, "t.json", None)];
    let csv = written(Table::Frames, Extent::Whole, RowFormat::Csv, &rows);
    assert_eq!(csv, b"file,rank,start_ns,duration_ns,process,thread,name\r\n");
    assert!(written(Table::Frames, Extent::Whole, RowFormat::Json, &rows).is_empty());
}

#[test]
fn every_table_has_the_same_rows_in_every_format() {
    for oddity in [Oddity::InvalidUtf8, Oddity::ControlCharacters, Oddity::HugeIds] {
        let trace = trace(&[oddity]);
        for table in TABLES {
            let rows = [Rows::whole(&trace, "a,b.json", Some(0))];
            let objects = objects(table, Extent::Whole, &rows);
            assert_eq!(objects.len(), table.len(&trace));
            assert!(!objects.is_empty());
            let csv = records(&written(table, Extent::Whole, RowFormat::Csv, &rows));
            assert_eq!(csv, objects.iter().map(as_texts).collect::<Vec<_>>(), "{table:?}");
        }
    }
}

#[test]
fn parts_have_the_rows_of_the_whole_without_what_needs_it() {
    let trace = trace(&[]);
    let classes = NameClasses::default().of(&trace);
    for table in TABLES {
        let whole = [Rows::whole(&trace, "t", None)];
        let part = [Rows::part(&trace, "t", None, classes.clone())];
        let mut expected = objects(table, Extent::Whole, &whole);
        for row in expected.iter_mut().filter_map(Value::as_object_mut) {
            for needs_whole in ["op", "phase", "step", "pass", "layer"] {
                row.remove(needs_whole);
            }
        }
        assert_eq!(objects(table, Extent::Parts, &part), expected, "{table:?}");
    }
}

/// A pipe that is closed after this many bytes.
struct Pipe(usize);

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_broken_pipe_is_seen_as_one() {
    let trace = trace(&[]);
    let rows = Rows::whole(&trace, "t", None);
    let formats = [
        RowFormat::Csv,
        RowFormat::Json,
        #[cfg(feature = "parquet")]
        RowFormat::Parquet,
    ];
    for format in formats {
        // Also behind what writers keep for later.
        for room in [0, 5, 500, 20_000] {
            let write = || {
                let mut writer = RowWriter::new(Table::Kernels, Extent::Whole, format, Pipe(room))?;
                for _ in 0..4000 {
                    writer.write(&rows)?;
                }
                writer.finish()
            };
            let error = write().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{format:?} {room}");
        }
    }
}

#[cfg(feature = "parquet")]
mod parquet_files {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::Field;

    use super::*;

    fn read(file: Vec<u8>) -> Vec<Value> {
        let reader = SerializedFileReader::new(bytes::Bytes::from(file)).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(|row| {
            let row = row.unwrap();
            let members = row.get_column_iter().filter_map(|(name, field)| {
                let value = match field {
                    Field::Null => return None,
                    Field::Long(value) => json!(value),
                    Field::ULong(value) => json!(value),
                    Field::Str(value) => json!(value),
                    other => panic!("{other:?}"),
                };
                Some((name.clone(), value))
            });
            Value::Object(members.collect())
        })
        .collect()
    }

    #[test]
    fn they_have_the_same_rows() {
        for trace in [one(), trace(&[Oddity::InvalidUtf8]), Trace::default()] {
            for table in TABLES {
                let rows = [Rows::whole(&trace, "t.json", Some(1))];
                let file = written(table, Extent::Whole, RowFormat::Parquet, &rows);
                assert_eq!(read(file), objects(table, Extent::Whole, &rows), "{table:?}");
            }
        }
    }

    #[test]
    fn several_groups_follow_each_other() {
        let trace = trace(&[]);
        let rows = vec![Rows::whole(&trace, "t.json", None); 4000];
        let all = 4000 * trace.kernels.len();
        assert!(all > 1 << 17);
        let file = written(Table::Kernels, Extent::Whole, RowFormat::Parquet, &rows);
        let reader = SerializedFileReader::new(bytes::Bytes::from(file.clone())).unwrap();
        assert!(reader.num_row_groups() > 1);
        let found = read(file);
        assert_eq!(found.len(), all);
        let one = objects(Table::Kernels, Extent::Whole, &rows[..1]);
        assert!(found.chunks(one.len()).all(|chunk| chunk == one));
    }
}
