//! What of a compiler's log is shown.

/// Errors that are shown; what comes after is mostly their consequence.
const MOST_ERRORS: usize = 3;
/// Lines after the first one of an error: the source line and where in it.
const LINES_PER_ERROR: usize = 3;
/// Lines of a log in which no error is found.
const MOST_LINES: usize = 8;

/// The first errors of a log, or its first lines if it has none.
pub(crate) fn first_errors(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let is_error = |line: &str| line.to_ascii_lowercase().contains("error");
    let mut shown = Vec::new();
    let mut errors = 0;
    let mut left = 0;
    for line in &lines {
        if is_error(line) {
            if errors == MOST_ERRORS {
                break;
            }
            errors += 1;
            left = LINES_PER_ERROR;
        }
        if left > 0 {
            shown.push(*line);
            left -= 1;
        }
    }
    if shown.is_empty() {
        shown.extend(lines.iter().take(MOST_LINES));
    }
    match shown.is_empty() {
        true => "it says nothing".to_owned(),
        false => shown.join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_errors_with_their_source_lines_and_nothing_else() {
        let log = "a.cu(1): warning: never used\n  int x;\n      ^\n\n\
                   a.cu(2): error: no such name\n  y = 1;\n  ^\n\
                   a.cu(3): error: second\n  s\n  ^\n\
                   a.cu(4): error: third\n  t\n  ^\n  far off\n\
                   a.cu(5): error: fourth\n4 errors detected\n";
        let shown = first_errors(log);
        assert_eq!(
            shown,
            "a.cu(2): error: no such name\n  y = 1;\n  ^\na.cu(3): error: second\n  s\n  ^\n\
             a.cu(4): error: third\n  t\n  ^"
        );
    }

    #[test]
    fn a_log_without_errors_is_cut() {
        assert_eq!(first_errors(" \n\n"), "it says nothing");
        assert_eq!(first_errors("one\n\ntwo\n"), "one\ntwo");
        let long: String = (0..100).map(|line| format!("{line}\n")).collect();
        assert_eq!(first_errors(&long).lines().count(), MOST_LINES);
    }
}
