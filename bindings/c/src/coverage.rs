//! What is known of the problems of a model, and what to measure next.

use std::mem::MaybeUninit;

use fusion_cost_model as fcm;

use crate::decision::Policy;
use crate::error::{Error, Status, given, make};
use crate::estimate::Estimate;
use crate::on_target::OnTarget;
use crate::problem::Problem;
use crate::text::array;

/// What is known of one problem.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Covered {
    /// The problem.
    pub problem: *const Problem,
    /// How often it was asked about.
    pub count: u32,
    /// Whether the policy decides by such evidence, and is expected to lose at most 0.5 % of the fused
    /// time.
    pub is_safe: bool,
    /// What is known.
    pub estimate: Estimate,
    /// The time that deciding by this estimate is expected to lose, over all its occurrences: 0 of a
    /// single op, about which nothing is decided, and NaN where nothing is known.
    pub expected_regret_ms: f64,
}

/// A problem to measure.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct NextPoint {
    /// The problem.
    pub problem: *const Problem,
    /// By how much it lowers the expected regret of all decisions, when those before it are measured.
    pub lowers_regret_by_ms: f64,
}

/// What is known of some problems, and what to measure next. What its pointers lead to belongs to it.
#[derive(Debug)]
#[repr(C)]
pub struct Coverage {
    /// The first of `num_questions`: each problem once, in the order in which they were asked about.
    pub questions: *const Covered,
    /// The number of different problems.
    pub num_questions: usize,
    /// The first of `num_to_measure`: the fewest problems that, when they are measured, let every
    /// decision be safe that can be. What lowers the expected regret most comes first.
    pub to_measure: *const NextPoint,
    /// The number of problems to measure.
    pub num_to_measure: usize,
    /// How many questions are answered by measured kernels, and not by a roofline or not at all.
    pub known: usize,
    /// How many are more than a single op, so that there is something to decide.
    pub decisions: usize,
    /// How many of the decisions are safe.
    pub safe_decisions: usize,
    /// The expected regret of all decisions together, as far as it is known.
    pub expected_regret_ms: f64,
    /// The storage behind the pointers, not for callers.
    pub storage: Box<CoverageStorage>,
}

/// What the pointers of a coverage lead to.
#[derive(Debug)]
pub struct CoverageStorage {
    // None of them changes once a pointer leads to its elements, so that those stay where they are.
    asked: Vec<Problem>,
    next: Vec<Problem>,
    questions: Vec<Covered>,
    to_measure: Vec<NextPoint>,
}

impl Coverage {
    fn of(coverage: &fcm::Coverage<'_>) -> Result<Self, Error> {
        let fcm::Coverage { questions, to_measure, .. } = coverage;
        // All of them first: a pointer leads to each.
        let mut storage = Box::new(CoverageStorage {
            asked: questions.iter().map(|covered| Problem::of(covered.problem)).collect(),
            next: to_measure.iter().map(|point| Problem::of(point.problem)).collect(),
            questions: Vec::new(),
            to_measure: Vec::new(),
        });
        let covered = |(covered, problem): (&fcm::Covered<'_>, _)| {
            Ok(Covered {
                problem,
                count: covered.count,
                is_safe: covered.is_safe,
                estimate: Estimate::of(&covered.estimate)?,
                expected_regret_ms: covered.expected_regret_ms.unwrap_or(f64::NAN),
            })
        };
        let asked = storage.asked.iter().map(std::ptr::from_ref);
        storage.questions =
            questions.iter().zip(asked).map(covered).collect::<Result<_, Error>>()?;
        let point = |(point, problem): (&fcm::NextPoint, _)| NextPoint {
            problem,
            lowers_regret_by_ms: point.lowers_regret_by_ms,
        };
        let next = storage.next.iter().map(std::ptr::from_ref);
        storage.to_measure = to_measure.iter().zip(next).map(point).collect();
        Ok(Self {
            questions: storage.questions.as_ptr(),
            num_questions: storage.questions.len(),
            to_measure: storage.to_measure.as_ptr(),
            num_to_measure: storage.to_measure.len(),
            known: coverage.known(),
            decisions: coverage.decisions(),
            safe_decisions: coverage.safe_decisions(),
            expected_regret_ms: coverage.expected_regret_ms(),
            storage,
        })
    }
}

/// What is known of some problems, which decisions about them are unsafe, and the fewest problems to
/// measure that make them safe. One that is asked about several times, as those of a model's layers
/// are, counts as often. Free it with `fcm_coverage_free`.
///
/// # Safety
///
/// `problems` leads to `num_problems` pointers to problems.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcm_on_target_coverage(
    on: Option<&OnTarget>,
    problems: *const Option<&Problem>,
    num_problems: usize,
    policy: Policy,
    coverage: Option<&mut MaybeUninit<Option<Box<Coverage>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> Status {
    make(coverage, error, || {
        let on = given(on, "on")?;
        // SAFETY: what the caller of this function promises.
        let problems = unsafe { array(problems, num_problems, "problems") }?;
        let asked = problems
            .iter()
            .enumerate()
            .map(|(index, problem)| Ok(given(*problem, &format!("problems[{index}]"))?.problem));
        let asked = asked.collect::<Result<Vec<fcm::Problem>, Error>>()?;
        Coverage::of(&on.view().coverage(&asked, &policy.meaning()?))
    })
}

/// Frees a coverage and all that its pointers lead to.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_coverage_free(coverage: Option<Box<Coverage>>) {
    drop(coverage);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constants::FCM_WHEN_UNKNOWN_CONSERVATIVE;
    use crate::decision::fcm_policy_new;
    use crate::error::{FCM_INVALID_ARGUMENT, FCM_OK};
    use crate::on_target::tests::on_cpu;
    use crate::problem::fcm_problem_text;
    use crate::problem::tests::problem;
    use crate::text::tests::read;

    const MEASURED: &str = "add_relu/f32/m4096.n1024";
    const UNMEASURED: &str = "sigmoid_mul/f32/m4096.n1024";

    fn coverage(problems: &[Option<&Problem>]) -> Result<Box<Coverage>, Status> {
        let (on, mut made) = (on_cpu(), MaybeUninit::uninit());
        let policy = fcm_policy_new(FCM_WHEN_UNKNOWN_CONSERVATIVE);
        let (first, count, place) = (problems.as_ptr(), problems.len(), Some(&mut made));
        // SAFETY: it is a slice of pointers to problems.
        let status =
            unsafe { fcm_on_target_coverage(Some(&on), first, count, policy, place, None) };
        // SAFETY: the call writes a coverage, or none.
        unsafe { made.assume_init() }.ok_or(status)
    }

    #[test]
    fn it_is_that_of_the_crate() {
        let asked = [MEASURED, UNMEASURED, MEASURED].map(problem);
        let found = coverage(&asked.each_ref().map(|one| Some(&**one))).unwrap();
        let on = on_cpu();
        let theirs = [MEASURED, UNMEASURED, MEASURED].map(|text| text.parse().unwrap());
        let policy = fcm::Policy::new(fcm::WhenUnknown::Conservative);
        let theirs = on.view().coverage(&theirs, &policy);

        // SAFETY: a coverage has as many questions and points as it says.
        let (questions, to_measure) = unsafe {
            let questions = array(found.questions, found.num_questions, "questions").unwrap();
            (questions, array(found.to_measure, found.num_to_measure, "to_measure").unwrap())
        };
        // SAFETY: they belong to the coverage.
        let text = |problem: *const Problem| read(fcm_problem_text(unsafe { problem.as_ref() }));
        assert_eq!(questions.len(), theirs.questions.len());
        for (ours, theirs) in questions.iter().zip(&theirs.questions) {
            assert_eq!(text(ours.problem), theirs.problem.to_string());
            assert_eq!((ours.count, ours.is_safe), (theirs.count, theirs.is_safe));
            assert_eq!(
                ours.expected_regret_ms.to_bits(),
                theirs.expected_regret_ms.unwrap_or(f64::NAN).to_bits()
            );
            assert_eq!(ours.estimate.evidence, Estimate::of(&theirs.estimate).unwrap().evidence);
        }
        let points = |lowers: f64, text: String| (lowers.to_bits(), text);
        let ours = to_measure.iter().map(|it| points(it.lowers_regret_by_ms, text(it.problem)));
        let expected = theirs.to_measure.iter();
        let expected = expected.map(|it| points(it.lowers_regret_by_ms, it.problem.to_string()));
        assert_eq!(ours.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        assert_eq!(found.num_to_measure, 1);
        assert_eq!((found.known, found.decisions, found.safe_decisions), (1, 2, 1));
        assert_eq!(found.expected_regret_ms.to_bits(), theirs.expected_regret_ms().to_bits());
        fcm_coverage_free(Some(found));
    }

    #[test]
    fn bad_lists_are_refused() {
        assert_eq!(coverage(&[None]).unwrap_err(), FCM_INVALID_ARGUMENT);
        assert_eq!(coverage(&[]).unwrap().num_questions, 0);
        let (on, mut made) = (on_cpu(), MaybeUninit::uninit());
        let bad = fcm_policy_new(0);
        // SAFETY: an array without elements may be null.
        let status = unsafe {
            fcm_on_target_coverage(Some(&on), std::ptr::null(), 0, bad, Some(&mut made), None)
        };
        assert_eq!(status, FCM_INVALID_ARGUMENT);
        assert_ne!(status, FCM_OK);
    }
}
