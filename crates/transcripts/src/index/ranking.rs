//! Which session of several is meant most likely: by how often the words stand in its best passage, measured against the
//! length of the passage (BM25), by how many of its passages have them, and by who says them.

use std::cmp::Reverse;
use std::collections::HashMap;

use gembridge_unified::Role;

use super::query::Query;

/// A passage with all the words of a query.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub session: i64,
    pub role: Role,
    pub at: u64,
    pub body: String,
}

/// A session with its best passage.
#[derive(Debug)]
pub(super) struct Ranked {
    pub best: Candidate,
    pub score: f64,
    pub passages: usize,
}

/// The usual constants of BM25.
const SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.75;

pub(super) fn ranked(candidates: Vec<Candidate>, query: &Query) -> Vec<Ranked> {
    let bytes: usize = candidates.iter().map(|candidate| candidate.body.len()).sum();
    let average = as_float(bytes) / as_float(candidates.len().max(1));
    let mut sessions: HashMap<i64, Ranked> = HashMap::new();
    for candidate in candidates {
        let score = score(&candidate, query, average);
        let Some(ranked) = sessions.get_mut(&candidate.session) else {
            sessions.insert(candidate.session, Ranked { best: candidate, score, passages: 1 });
            continue;
        };
        ranked.passages += 1;
        if score > ranked.score {
            (ranked.best, ranked.score) = (candidate, score);
        }
    }
    let mut ranked: Vec<_> = sessions.into_values().collect();
    for session in &mut ranked {
        session.score += 0.25 * as_float(session.passages).ln();
    }
    ranked.sort_by(|one, other| {
        let by_score = other.score.total_cmp(&one.score);
        by_score
            .then_with(|| (Reverse(one.best.at), one.best.session).cmp(&(Reverse(other.best.at), other.best.session)))
    });
    ranked
}

fn score(candidate: &Candidate, query: &Query, average: f64) -> f64 {
    let lower = candidate.body.to_lowercase();
    let length = as_float(candidate.body.len()) / average.max(1.0);
    let of_term =
        |count: f64| count * (SATURATION + 1.0) / (count + SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length));
    // A word with an accent is found without it, and then not counted here: it stands there at least once.
    let terms: f64 = query.terms().iter().map(|term| of_term(as_float(term.count(&lower).max(1)))).sum();
    let weight = match candidate.role {
        // What a person typed is what the person remembers.
        Role::User => 1.3,
        Role::Assistant => 1.1,
        Role::System => 1.0,
    };
    terms * weight
}

#[expect(clippy::cast_precision_loss, reason = "a score needs no more than 52 bits of a count")]
fn as_float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(session: i64, role: Role, at: u64, body: &str) -> Candidate {
        Candidate { session, role, at, body: body.to_owned() }
    }

    #[test]
    fn sessions_are_ranked_by_their_best_passage() {
        let query = Query::parse("flaky test").unwrap();
        let filler = "something else entirely ".repeat(30);
        let ranked = ranked(
            vec![
                passage(1, Role::Assistant, 9, &format!("flaky test {filler}")),
                passage(2, Role::User, 1, "why is this test flaky"),
                passage(2, Role::Assistant, 2, &format!("the flaky test {filler}")),
                passage(3, Role::Assistant, 3, "a flaky test is a test"),
                passage(4, Role::Assistant, 4, &format!("flaky test {filler}")),
            ],
            &query,
        );
        let order: Vec<_> = ranked.iter().map(|ranked| ranked.best.session).collect();
        assert_eq!(order, [2, 3, 1, 4], "of two alike the newer one is first");
        assert_eq!((ranked[0].passages, ranked[0].best.at), (2, 1));
    }
}
