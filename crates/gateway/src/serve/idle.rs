//! Which idle sessions are closed at an agent for those who wait for one.

use std::collections::HashMap;

use gembridge_api::identity::Rank;
use gembridge_core::model::{Principal, Timestamp};

use super::session_cap::{Demand, Obstacle};

/// A session with an agent, in which nothing runs or waits.
pub struct Idle<S> {
    pub session: S,
    pub owner: Principal,
    pub rank: Rank,
    /// Whether a client follows it.
    pub attached: Attached,
    pub used: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attached {
    No,
    Yes,
}

/// One session for each demand, as far as there are some: of the key that has the most sessions open, and of that key
/// one that nobody follows, or else the one used longest ago.
pub fn choose<S>(demands: &[Demand], mut idle: Vec<Idle<S>>, mut open: HashMap<Principal, usize>) -> Vec<S> {
    let mut chosen = Vec::new();
    for demand in demands {
        let able = idle.iter().enumerate().filter(|(_, idle)| gives_way(idle, demand));
        let best = able.min_by_key(|(_, idle)| {
            let open = open.get(&idle.owner).copied().unwrap_or(0);
            (std::cmp::Reverse(open), idle.attached, idle.used)
        });
        let Some((at, _)) = best else { continue };
        let closed = idle.swap_remove(at);
        if let Some(open) = open.get_mut(&closed.owner) {
            *open = open.saturating_sub(1);
        }
        chosen.push(closed.session);
    }
    chosen
}

/// What a guest lacks is never taken from a session that the operator follows.
fn gives_way<S>(idle: &Idle<S>, demand: &Demand) -> bool {
    match demand.obstacle {
        Obstacle::Key => idle.owner == demand.owner.principal,
        Obstacle::Guests => idle.rank == Rank::User,
        Obstacle::All => demand.owner.rank == Rank::Admin || idle.rank == Rank::User || idle.attached == Attached::No,
    }
}

#[cfg(test)]
mod tests {
    use gembridge_api::identity::Identity;

    use super::*;

    fn idle(session: &'static str, rank: Rank, attached: Attached, used: u64) -> Idle<&'static str> {
        let owner = Principal::new(session.split('-').next().unwrap_or_default());
        Idle { session, owner, rank, attached, used: Timestamp(used) }
    }

    fn sessions() -> Vec<Idle<&'static str>> {
        vec![
            idle("op-1", Rank::Admin, Attached::Yes, 1),
            idle("op-2", Rank::Admin, Attached::No, 9),
            idle("ann-1", Rank::User, Attached::Yes, 5),
            idle("ann-2", Rank::User, Attached::Yes, 4),
            idle("ann-3", Rank::User, Attached::No, 7),
            idle("bob-1", Rank::User, Attached::No, 2),
        ]
    }

    fn demand(name: &str, rank: Rank, obstacle: Obstacle) -> Demand {
        Demand { owner: Identity { principal: Principal::new(name), rank }, obstacle }
    }

    #[test]
    fn f6_idle_sessions_give_way_those_of_the_key_that_holds_the_most_first() {
        let open =
            || HashMap::from([("op", 2), ("ann", 4), ("bob", 3)].map(|(name, open)| (Principal::new(name), open)));
        let (guest, operator) = (Rank::User, Rank::Admin);
        for (demands, expected) in [
            (vec![demand("op", operator, Obstacle::All)], vec!["ann-3"]),
            (vec![demand("bob", guest, Obstacle::Guests); 3], vec!["ann-3", "bob-1", "ann-2"]),
            (vec![demand("bob", guest, Obstacle::Key); 2], vec!["bob-1"]),
            (vec![demand("eve", guest, Obstacle::Key)], vec![]),
            (vec![demand("eve", guest, Obstacle::All); 9], vec!["ann-3", "bob-1", "ann-2", "op-2", "ann-1"]),
            (vec![demand("op", operator, Obstacle::All); 9], vec!["ann-3", "bob-1", "ann-2", "op-2", "ann-1", "op-1"]),
        ] {
            assert_eq!(choose(&demands, sessions(), open()), expected, "{demands:?}");
        }
    }
}
