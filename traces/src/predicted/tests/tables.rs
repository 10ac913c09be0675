//! Tables of measured kernels of any shape.

use super::*;

#[test]
fn collectives_count_once() {
    let rows = measured(&format!(
        "{HEADER}hcom_a_,10,1000.25\nhcom_a_,12,1000.9\nhcom_a_,5,1001.0\nhcom_b_,7,1000.1\n\
         MatMul,3,1000.3\nMatMul,3,1000.3\n"
    ));
    let expected = [("MatMul", 6.0, 2), ("hcom_a_", 17.0, 2), ("hcom_b_", 7.0, 1)];
    assert_eq!(figures(&rows), expected);
    assert_eq!((rows.skipped.recorded_twice, rows.rows), (1, 6));
    assert_eq!(codes(&rows.warnings), [""; 0]);
    // More digits than an f64 has: the last one of a microsecond is not the first of the next.
    let rows = measured(&format!(
        "{HEADER}hcom_a_,1,1751410836123456.999\nhcom_a_,1,1751410836123457.001\n"
    ));
    assert_eq!(figures(&rows), [("hcom_a_", 2.0, 2)]);
}

#[test]
fn rows_that_do_not_count() {
    let rows = measured(&format!(
        "{HEADER}AicpuKernel,9,1\nallgatherAicpuKernel,9,1\n,5,1\n \t,5,1\nA,x,1\nA,-1,1\nA,nan,1\n\
         A,inf,1\nA,,1\nA\n A\t,0,1\n"
    ));
    assert_eq!(figures(&rows), [("A", 0.0, 1)]);
    let skipped = Skipped { no_type: 2, aicpu: 2, bad_duration: 6, recorded_twice: 0 };
    assert_eq!((rows.skipped, rows.skipped.sum(), rows.rows), (skipped, 10, 11));
    assert_eq!(rows.warnings, [InputWarning::BadMeasuredDurations { count: 6, line: 6 }]);
}

#[test]
fn a_bad_start_is_one_warning_with_its_line() {
    for end in ["\n", "\r\n"] {
        let csv = [
            "Type,Duration(us),Start Time(us)",
            "A,1,1",
            "\"B\nb\",1,2",
            "hcom_a_,3,bad\t",
            "hcom_a_,4,",
            "A,1,never",
            "hcom_a_,5,nan",
            "",
        ]
        .join(end);
        let rows = measured(&csv);
        let warning = InputWarning::BadStarts { count: 4, line: 5, as_zero: false };
        assert_eq!(rows.warnings, [warning], "{csv:?}");
        assert_eq!(figures(&rows)[2], ("hcom_a_", 12.0, 3));
        assert_eq!(rows.skipped, Skipped::default());
        let original = Measured::from_csv(csv.as_bytes(), "k", None, Rules::Original).unwrap();
        assert_eq!(figures(&original)[2], ("hcom_a_", 5.0, 1));
        assert_eq!(codes(&original.warnings), ["bad-starts"]);
    }
    let rows = measured("Type,Duration(us)\nA,1\nhcom_a_,3\nhcom_a_,3\n");
    assert_eq!(rows.warnings, [InputWarning::NoStarts { collectives: 2 }]);
    assert_eq!(figures(&rows)[1], ("hcom_a_", 6.0, 2));
    assert_eq!(codes(&measured("Type,Duration(us)\nA,1\n").warnings), [""; 0]);
}

#[test]
fn marks_and_tabs_in_tables() {
    let rows =
        measured("\u{feff}Name\t, Type\t,Duration(us)\t,Start Time(us)\t\nx,A\t,1.5\t,3\t\n");
    assert_eq!(figures(&rows), [("A", 1.5, 1)]);
    assert_eq!(codes(&rows.warnings), [""; 0]);
    let csv = b"Type,Duration(us),Name\nA,1,\xff\nB\xff,2,b\n";
    let rows = Measured::from_csv(csv, "k", None, Rules::Own).unwrap();
    assert_eq!(figures(&rows), [("A", 1.0, 1), ("B\u{fffd}", 2.0, 1)]);
    assert_eq!(rows.warnings, [InputWarning::BadText { count: 1, line: 3 }]);
}

#[test]
fn what_is_no_table() {
    for (csv, reason) in [
        (&b""[..], "it is empty"),
        (b"\xef\xbb\xbf\n\n", "it is empty"),
        (b"\xff\xfeT\0", "it is UTF-16; save it as UTF-8"),
        (
            b"Type,Start Time(us)\nA,1\n",
            "it has no column `Duration(us)`; its columns are `Type`, ",
        ),
        (b"Duration(us)\n1\n", "it has no column `Type`"),
        (b"Type,Type ,Duration(us)\n", "it has two columns `Type`"),
        (b"Type,Duration(us),Start Time(us),Start Time(us)\n", "it has two columns `Start"),
        (b"a,\xff,c\n1,2,3\n", "its columns are `a`, `\u{fffd}`, `c`"),
        (b"start_ns,duration_ns,name\n", "rows of another table than that of kernels"),
        (b"duration_ns,kind,class\n", "it has no column `name`"),
    ] {
        let error = refusal(csv, None);
        assert!(error.contains(reason), "{error}");
        assert!(error.starts_with("kernels.csv is not a table of measured kernels: "), "{error}");
    }
    let error = refusal(b"Type,Duration(us)\n", Some(MeasuredBy::Name));
    assert!(error.contains("has types of its own"), "{error}");
    assert_eq!(measured(HEADER).warnings, [InputWarning::NothingMeasured]);
}

#[test]
fn rows_of_a_trace() {
    let csv = "file,rank,start_ns,duration_ns,kind,class,label,name\r\n\
        a,0,1,1500,kernel,GEMM,GEMM,\"k<1, 2>\"\r\na,0,2,500,kernel,GEMM,GEMM,k2\r\n";
    let read = |csv: &str, by| Measured::from_csv(csv.as_bytes(), "k", by, Rules::Own).unwrap();
    assert_eq!(figures(&read(csv, None)), [("k<1, 2>", 1.5, 1), ("k2", 0.5, 1)]);
    assert_eq!(figures(&read(csv, Some(MeasuredBy::Class))), [("GEMM", 2.0, 2)]);
    let two = format!("{csv}b,1,1,x,kernel,GEMM,GEMM,k2\r\nb,1,1,500,kernel,GEMM,GEMM,k2\r\n");
    let bad = InputWarning::BadMeasuredDurations { count: 1, line: 4 };
    let expected = [bad, InputWarning::SeveralRanks { ranks: 2 }];
    assert_eq!(read(&two, None).warnings, expected);
}
