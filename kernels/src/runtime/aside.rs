//! Where the thread that measures runs while a runtime computes.

use crate::affinity::{Binding, Mask};

/// Keeps the calling thread off the processors of a runtime until the result is dropped. Where there
/// are no others, it goes to that of the runtime's first thread, which sleeps whenever this one has
/// something to do. The other threads may be spinning then, and would wait for a processor.
pub(super) fn aside(runtime: &[u32]) -> Option<Binding> {
    let before = Mask::of_this_thread()?;
    let mut place = before.processors();
    place.retain(|processor| !runtime.contains(processor));
    if place.is_empty() {
        place.extend(runtime.first());
    }
    Mask::of(&place).bind_this_thread().then(|| Binding::of_this_thread(before))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn it_leaves_a_runtime_its_processors_and_shares_the_first_where_there_are_no_others() {
        let looks = || {
            let now = || Mask::of_this_thread().unwrap().processors();
            let all = now();
            let beside = |runtime: &[u32]| {
                let aside = aside(runtime).unwrap();
                let place = now();
                drop(aside);
                assert_eq!(now(), all);
                place
            };
            assert_eq!(beside(&all), all[..1]);
            let backwards: Vec<u32> = all.iter().rev().copied().collect();
            assert_eq!(beside(&backwards), backwards[..1]);
            for (index, one) in all.iter().enumerate() {
                let mut others = all.clone();
                others.remove(index);
                let expected = if others.is_empty() { all.clone() } else { others };
                assert_eq!(beside(&[*one]), expected);
            }
        };
        std::thread::spawn(looks).join().unwrap();
    }
}
