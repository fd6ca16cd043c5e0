//! The query of `/acp`: which session, and how much of it is shown again.

use gembridge_core::model::SessionId;

use crate::acp::wire::ReplayWish;
use crate::problem::{Kind, Problem};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pub session: Option<SessionId>,
    pub replay: ReplayWish,
}

/// Reads the query. A number that is none, and a key that nobody knows, is an error: a typing mistake must not show
/// a whole history. A key in the address would end up in logs and histories, so it is refused whatever it is worth.
pub fn query(text: &str) -> Result<Query, Problem> {
    let mut query = Query::default();
    let mut seen = Vec::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if seen.contains(&name) {
            return Err(wrong(name, "stands there twice"));
        }
        seen.push(name);
        match name {
            "session" => {
                let shown: String = value.chars().take(64).flat_map(char::escape_default).collect();
                let id = value.parse().map_err(|_| gembridge_core::error::Error::UnknownSession(shown))?;
                query.session = Some(id);
            }
            "limit" => query.replay.limit = number(name, value)?,
            "since" => query.replay.since = number(name, value)?,
            "before" => query.replay.before = number(name, value)?,
            "after" => query.replay.after = number(name, value)?,
            // Used up before the request came here.
            "ticket" => {}
            "key" | "token" | "api_key" | "apikey" | "access_token" | "bearer" | "authorization" => {
                let problem = "a key must not stand in the address; send it as `authorization: Bearer <key>`, as the \
                               subprotocol `bearer.<key>`, or get a ticket from `POST /acp/ticket`";
                return Err(Problem::new(Kind::Invalid, problem));
            }
            unknown => {
                let shown: String = unknown.chars().take(32).flat_map(char::escape_default).collect();
                return Err(wrong(&shown, "is not known here; `session`, `limit`, `since`, `before` and `after` are"));
            }
        }
    }
    check(&query.replay)?;
    Ok(query)
}

fn check(replay: &ReplayWish) -> Result<(), Problem> {
    if replay.after.is_some() && (replay.limit.is_some() || replay.since.is_some() || replay.before.is_some()) {
        return Err(wrong("after", "stands alone: it goes on where a client left off; leave the others out"));
    }
    Ok(())
}

fn number(name: &str, value: &str) -> Result<Option<u64>, Problem> {
    let is_plain = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let number = value.parse().ok().filter(|_| is_plain);
    number.map(Some).ok_or_else(|| wrong(name, "must be a whole number, such as `7`"))
}

fn wrong(name: &str, why: &str) -> Problem {
    Problem::invalid(name, format!("`{name}` {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_everything_else_is_refused_by_name() {
        let replay = |text: &str| query(text).map(|query| query.replay);
        let expected = ReplayWish { limit: Some(3), since: Some(1), before: Some(9), after: None };
        assert_eq!(replay("limit=3&since=1&before=9"), Ok(expected));
        assert_eq!(replay("after=12"), Ok(ReplayWish { after: Some(12), ..ReplayWish::default() }));
        assert_eq!(query(""), Ok(Query::default()));
        for wrong in [
            "limit=",
            "limit=x",
            "limit=-1",
            "limit=1.5",
            "limit=+1",
            "since=99999999999999999999",
            "before=0x10",
            "limit=1&limit=2",
            "after=1&limit=1",
            "after=1&since=1",
            "unknown=1",
            "limit",
            "key=gb-x",
            "token=x",
        ] {
            let problem = query(wrong).unwrap_err();
            assert_eq!(problem.kind, Kind::Invalid, "{wrong}");
            assert!(!problem.message.contains("gb-x"));
        }
        assert_eq!(query("session=nonsense").unwrap_err().kind, Kind::NotFound);
    }
}
