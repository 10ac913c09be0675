//! Which processors to use first, from what Linux reports under `/sys/devices`.

use std::collections::HashMap;
use std::path::Path;

/// Processors to bind the threads to, best first: one of each physical core before the second of
/// any, and faster cores before slower ones. `allowed` lists the usable processors, `devices` is
/// the folder that describes them. A processor without a description counts as a core of its own,
/// as fast as any other.
pub(crate) fn best_first(devices: &Path, allowed: &[u32]) -> Vec<u32> {
    let mut allowed = allowed.to_vec();
    allowed.sort_unstable();
    allowed.dedup();
    let speeds = speeds(devices, &allowed);
    let mut used: HashMap<Core, u32> = HashMap::new();
    let mut ranked: Vec<_> = allowed
        .iter()
        .zip(speeds)
        .map(|(&processor, speed)| {
            let before = used.entry(core(devices, processor)).or_default();
            *before += 1;
            (*before, std::cmp::Reverse(speed), processor)
        })
        .collect();
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, _, processor)| processor).collect()
}

/// What distinguishes physical cores.
#[derive(PartialEq, Eq, Hash)]
enum Core {
    /// The first of the processors on it.
    First(u32),
    /// Its package and its number there.
    Numbered(u32, u32),
    /// Unknown: the processor itself.
    Alone(u32),
}

fn core(devices: &Path, processor: u32) -> Core {
    let topology = processor_folder(devices, processor).join("topology");
    let number = |name| read(&topology.join(name))?.parse().ok();
    let siblings = read(&topology.join("thread_siblings_list"));
    if let Some(first) = siblings.and_then(|list| parse_list(&list).min()) {
        return Core::First(first);
    }
    match (number("physical_package_id"), number("core_id")) {
        (Some(package), Some(core)) => Core::Numbered(package, core),
        _ => Core::Alone(processor),
    }
}

/// How fast each processor is, in a unit of its own: from the first source that knows all of
/// them, since two sources cannot be compared.
fn speeds(devices: &Path, processors: &[u32]) -> Vec<u64> {
    let from_file = |name: &str| -> Option<Vec<u64>> {
        let one =
            |&processor: &u32| read(&processor_folder(devices, processor).join(name))?.parse().ok();
        processors.iter().map(one).collect()
    };
    from_file("cpu_capacity")
        .or_else(|| {
            // The fast cores of hybrid Intel processors.
            let list = read(&devices.join("cpu_core/cpus"))?;
            let fast: Vec<u32> = parse_list(&list).collect();
            Some(processors.iter().map(|processor| u64::from(fast.contains(processor))).collect())
        })
        .or_else(|| from_file("cpufreq/cpuinfo_max_freq"))
        .unwrap_or_else(|| vec![0; processors.len()])
}

fn processor_folder(devices: &Path, processor: u32) -> std::path::PathBuf {
    devices.join(format!("system/cpu/cpu{processor}"))
}

fn read(file: &Path) -> Option<String> {
    Some(std::fs::read_to_string(file).ok()?.trim().to_owned())
}

/// The most processors that a list is believed to name: more than Linux can be built for.
const MOST_PROCESSORS: u32 = 1 << 16;

/// The processors that a list such as `0-3,8` names; parts that name none are left out.
pub(crate) fn parse_list(list: &str) -> impl Iterator<Item = u32> {
    list.split(',').flat_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            (Ok(first), Ok(last)) if last < MOST_PROCESSORS => first..last + 1,
            _ => 0..0,
        }
    })
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A made-up folder with these files.
    fn devices<'a>(files: impl IntoIterator<Item = (String, &'a str)>) -> TempDir {
        let folder = TempDir::new().unwrap();
        for (name, text) in files {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, format!("{text}\n")).unwrap();
        }
        folder
    }

    fn file(processor: u32, name: &str) -> String {
        format!("system/cpu/cpu{processor}/{name}")
    }

    /// The second threads of the cores come after all first ones.
    fn four_cores_with_two_threads() -> TempDir {
        devices((0..8).map(|processor| {
            let list = ["0,4", "1,5", "2,6", "3,7"][processor as usize % 4];
            (file(processor, "topology/thread_siblings_list"), list)
        }))
    }

    #[test]
    fn lists_of_the_system() {
        let parsed = |list| parse_list(list).collect::<Vec<u32>>();
        assert_eq!(parsed("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(parsed("7"), [7]);
        assert_eq!(parsed(" 1 - 2 , 4 "), [1, 2, 4]);
        assert!(parsed("").is_empty());
        assert_eq!(parsed("3-1,x,-,5"), [5]);
        assert!(parsed("0-4294967295").is_empty());
    }

    #[test]
    fn every_core_comes_before_its_second_thread() {
        let folder = four_cores_with_two_threads();
        let all: Vec<u32> = (0..8).collect();
        assert_eq!(best_first(folder.path(), &all), all);

        // The other way of numbering: the threads of a core are neighbours.
        let neighbours = ["0-1", "2-3", "4-5"];
        let folder = devices((0..6).map(|processor| {
            let list = neighbours[processor as usize / 2];
            (file(processor, "topology/thread_siblings_list"), list)
        }));
        assert_eq!(best_first(folder.path(), &[5, 4, 3, 2, 1, 0]), [0, 2, 4, 1, 3, 5]);
    }

    #[test]
    fn a_mask_with_holes_leaves_the_second_thread_of_a_core_as_its_first() {
        let folder = four_cores_with_two_threads();
        assert_eq!(best_first(folder.path(), &[1, 4, 5, 7]), [1, 4, 7, 5]);
        assert_eq!(best_first(folder.path(), &[6, 6]), [6]);
        assert!(best_first(folder.path(), &[]).is_empty());
    }

    #[test]
    fn cores_are_also_told_apart_by_their_numbers() {
        let places = [("0", "0"), ("1", "0"), ("0", "0"), ("1", "0")];
        let folder = devices((0..4).zip(places).flat_map(|(processor, (package, core))| {
            [
                (file(processor, "topology/physical_package_id"), package),
                (file(processor, "topology/core_id"), core),
            ]
        }));
        assert_eq!(best_first(folder.path(), &[0, 2, 3]), [0, 3, 2]);
    }

    /// Two fast cores with two threads each (0-3) and four slow ones (4-7).
    fn hybrid<'a>(more: impl IntoIterator<Item = (String, &'a str)>) -> TempDir {
        let lists = ["0-1", "0-1", "2-3", "2-3", "4", "5", "6", "7"];
        let siblings = (0..)
            .zip(lists)
            .map(|(processor, list)| (file(processor, "topology/thread_siblings_list"), list));
        devices(siblings.chain(more))
    }

    #[test]
    fn fast_cores_come_first_and_second_threads_last() {
        let fast_first = [0, 2, 4, 5, 6, 7, 1, 3];
        let all: Vec<u32> = (0..8).collect();

        let listed = hybrid([("cpu_core/cpus".to_owned(), "0-3")]);
        assert_eq!(best_first(listed.path(), &all), fast_first);

        // Here the numbers begin with the slow cores.
        let capacity = |processor| if processor < 4 { "446" } else { "1024" };
        let big_little =
            devices((0..8).map(|processor| (file(processor, "cpu_capacity"), capacity(processor))));
        assert_eq!(best_first(big_little.path(), &all), [4, 5, 6, 7, 0, 1, 2, 3]);

        let clock = |processor| if processor < 4 { "5600000" } else { "4300000" };
        let clocked = hybrid(
            (0..8).map(|processor| (file(processor, "cpufreq/cpuinfo_max_freq"), clock(processor))),
        );
        assert_eq!(best_first(clocked.path(), &all), fast_first);
        assert_eq!(best_first(clocked.path(), &[1, 3, 5, 7]), [1, 3, 5, 7]);
    }

    #[test]
    fn a_source_that_does_not_know_all_is_not_believed() {
        let partly = hybrid([
            (file(7, "cpu_capacity"), "1024"),
            (file(0, "cpufreq/cpuinfo_max_freq"), "fast"),
        ]);
        assert_eq!(best_first(partly.path(), &[0, 4, 7]), [0, 4, 7]);
    }

    #[test]
    fn without_any_description_the_numbers_are_the_order() {
        assert_eq!(best_first(Path::new("/nonexistent"), &[9, 2, 5]), [2, 5, 9]);
    }
}
