//! Gateways that add, remove, go away and come back in any order come to have the same list, and what one removed stays
//! removed everywhere.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{EntryId, merge};

const GATEWAYS: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    /// A person adds an entry to the list of a gateway. Each entry is made once.
    Add(usize),
    /// A person removes one of the entries of a gateway.
    Remove(usize, usize),
    /// A gateway asks the others.
    Share(usize),
    /// Redis is restarted without what it held.
    Empty,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..GATEWAYS).prop_map(Step::Add),
        3 => ((0..GATEWAYS), (0..8_usize)).prop_map(|(gateway, which)| Step::Remove(gateway, which)),
        6 => (0..GATEWAYS).prop_map(Step::Share),
    ]
}

#[derive(Default)]
struct World {
    own: [BTreeSet<EntryId>; GATEWAYS],
    common: [BTreeSet<EntryId>; GATEWAYS],
    listed: BTreeSet<EntryId>,
    removed: BTreeSet<EntryId>,
    /// Every entry that a person removed, wherever.
    revoked: BTreeSet<EntryId>,
    made: usize,
}

impl World {
    fn take(&mut self, step: &Step) {
        match *step {
            Step::Add(gateway) => {
                self.made += 1;
                self.own[gateway].insert(self.made.to_string());
            }
            Step::Remove(gateway, which) => {
                if let Some(id) = self.own[gateway].iter().nth(which).cloned() {
                    self.own[gateway].remove(&id);
                    // One that was never told of is gone without a word.
                    if self.common[gateway].contains(&id) {
                        self.revoked.insert(id);
                    }
                }
            }
            Step::Share(gateway) => self.share(gateway),
            Step::Empty => {
                self.listed.clear();
                self.removed.clear();
            }
        }
    }

    fn share(&mut self, gateway: usize) {
        let told = merge(&self.own[gateway], &self.common[gateway], &self.listed, &self.removed);
        for id in told.publish {
            self.listed.insert(id);
        }
        for id in told.retract {
            self.listed.remove(&id);
            self.removed.insert(id);
        }
        let own = &mut self.own[gateway];
        own.retain(|id| !told.remove.contains(id));
        own.extend(told.add);
        self.common[gateway] = own.clone();
    }

    fn settle(&mut self) {
        for gateway in (0..GATEWAYS).chain(0..GATEWAYS) {
            self.share(gateway);
        }
    }
}

proptest! {
    #[test]
    fn all_come_to_have_the_same_and_nothing_that_was_removed(steps in prop::collection::vec(step(), 1..80)) {
        let mut world = World::default();
        for step in &steps {
            world.take(step);
        }
        world.settle();
        for gateway in 0..GATEWAYS {
            prop_assert_eq!(&world.own[gateway], &world.own[0]);
            prop_assert!(world.own[gateway].is_disjoint(&world.revoked), "{:?}", world.own[gateway]);
        }
    }

    #[test]
    fn a_redis_that_lost_everything_takes_nothing_away(steps in prop::collection::vec(step(), 1..40)) {
        let mut world = World::default();
        for step in &steps {
            world.take(step);
        }
        world.settle();
        let before = world.own.clone();
        world.take(&Step::Empty);
        world.settle();
        prop_assert_eq!(&world.own, &before);
        prop_assert_eq!(&world.listed, &before[0]);
    }
}
