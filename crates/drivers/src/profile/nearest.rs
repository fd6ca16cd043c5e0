//! The word that was probably meant: edit distance over a short list of valid ones.

/// The candidate nearest to `key`, if one is near enough that a slip of the hand explains the difference.
///
/// Case, `-` and `_` do not count as differences. Of equally near candidates the one of the same length wins, then the first.
pub fn nearest<'a>(key: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let wanted = folded(key);
    let (distance, _, best) = candidates
        .iter()
        .map(|candidate| {
            let word = folded(candidate);
            (distance(&wanted, &word), wanted.len().abs_diff(word.len()), *candidate)
        })
        .min_by_key(|(distance, length_difference, _)| (*distance, *length_difference))?;
    // A third of the longer word may differ: `comand` is `command`, but `port` is not `host`.
    let longer = wanted.len().max(best.chars().count());
    (distance * 3 <= longer).then_some(best)
}

fn folded(word: &str) -> Vec<char> {
    word.chars().flat_map(char::to_lowercase).map(|c| if c == '-' { '_' } else { c }).collect()
}

/// Insertions, deletions, substitutions and swaps of neighbours that lead from one word to the other.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut before = vec![0; to.len() + 1];
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (row, &left) in from.iter().enumerate() {
        let mut current = Vec::with_capacity(to.len() + 1);
        current.push(row + 1);
        for (column, &right) in to.iter().enumerate() {
            let mut cost = above[column] + usize::from(left != right);
            cost = cost.min(above[column + 1] + 1).min(current[column] + 1);
            let swapped = row > 0 && column > 0 && left == to[column - 1] && from[row - 1] == right;
            if swapped {
                cost = cost.min(before[column - 1] + 1);
            }
            current.push(cost);
        }
        before = std::mem::replace(&mut above, current);
    }
    above[to.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{distance, nearest};

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
    }

    fn word() -> impl Strategy<Value = Vec<char>> {
        "[a-d_é]{0,8}".prop_map(|word| word.chars().collect())
    }

    proptest! {
        #[test]
        fn distance_is_zero_only_for_equal_words_and_symmetric(a in word(), b in word()) {
            prop_assert_eq!(distance(&a, &b) == 0, a == b);
            prop_assert_eq!(distance(&a, &b), distance(&b, &a));
            prop_assert!(distance(&a, &b) <= a.len().max(b.len()));
        }

        #[test]
        fn a_valid_key_is_its_own_nearest(keys in proptest::collection::btree_set("[a-z_]{1,12}", 1..8)) {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            for key in &keys {
                prop_assert_eq!(nearest(key, &keys), Some(*key));
            }
        }
    }
}
