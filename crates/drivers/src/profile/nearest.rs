//! The valid word that was probably meant by an unknown one.

/// The candidate nearest to `key`, if one is near enough that a slip of the hand explains the difference.
///
/// Case, `-` and `_` do not count as differences. Of equally near candidates the one of the same length wins, then the first.
pub fn nearest<'a>(key: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let wanted = folded(key);
    let (distance, _, best) = candidates
        .iter()
        .map(|candidate| {
            let word = folded(candidate);
            (strsim::osa_distance(&wanted, &word), wanted.len().abs_diff(word.len()), *candidate)
        })
        .min_by_key(|(distance, length_difference, _)| (*distance, *length_difference))?;
    // A third of the longer word may differ: `comand` is `command`, but `port` is not `host`.
    let longer = wanted.chars().count().max(best.chars().count());
    (distance * 3 <= longer).then_some(best)
}

fn folded(word: &str) -> String {
    word.chars().flat_map(char::to_lowercase).map(|c| if c == '-' { '_' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::nearest;

    #[test]
    fn a_slip_of_the_hand_is_recognised_and_a_different_word_is_not() {
        let keys = ["command", "args", "mode", "model", "workspace", "native_tools"];
        for (typed, meant) in [
            ("comand", Some("command")),
            ("commnad", Some("command")),
            ("arg", Some("args")),
            ("Args", Some("args")),
            ("modle", Some("model")),
            ("native-tools", Some("native_tools")),
            ("workspcae", Some("workspace")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, &keys), meant, "typed `{typed}`");
        }
        assert_eq!(nearest("anything", &[]), None);
        let settings = ["host", "port", "acp_port", "approval_mode"];
        for (typed, meant) in
            [("prot", Some("port")), ("Port", Some("port")), ("aproval_mode", Some("approval_mode")), ("colour", None)]
        {
            assert_eq!(nearest(typed, &settings), meant, "typed `{typed}`");
        }
    }

    proptest! {
        #[test]
        fn a_valid_key_is_its_own_nearest(keys in proptest::collection::btree_set("[a-z_]{1,12}", 1..8)) {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            for key in &keys {
                prop_assert_eq!(nearest(key, &keys), Some(*key));
            }
        }
    }
}
