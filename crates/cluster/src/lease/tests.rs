//! Random interleavings of gateways, of Redis and of a network that delays and loses: while one gateway takes its lease for
//! running, no other sees it ended.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{LEASE, NodeLease};

const NODES: usize = 3;

/// One step of the world.
#[derive(Clone, Debug)]
enum Step {
    /// Time goes on.
    Wait(u64),
    /// A gateway sends a renewal.
    Send(usize),
    /// The oldest renewal of a gateway on its way reaches Redis.
    Arrive(usize),
    /// The oldest answer on its way to a gateway reaches it.
    Answer(usize),
    /// What is on its way from or to a gateway is lost.
    Lose(usize),
    /// Redis is restarted without what it held.
    Empty,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u64..1_500).prop_map(Step::Wait),
        4 => (0..NODES).prop_map(Step::Send),
        4 => (0..NODES).prop_map(Step::Arrive),
        4 => (0..NODES).prop_map(Step::Answer),
        1 => (0..NODES).prop_map(Step::Lose),
        1 => Just(Step::Empty),
    ]
}

/// A gateway, and what is under way between it and Redis.
#[derive(Clone)]
struct Gateway {
    lease: NodeLease,
    /// When each renewal was sent.
    requests: Vec<Instant>,
    /// When each renewal that Redis took was sent.
    answers: Vec<Instant>,
}

struct World {
    now: Instant,
    gateways: Vec<Gateway>,
    /// Redis: until when each gateway's key stands.
    keys: BTreeMap<usize, Instant>,
    /// Redis held nothing at this moment: what a gateway believes from before is not known there.
    emptied: Option<Instant>,
}

impl World {
    fn new() -> Self {
        let gateway = Gateway { lease: NodeLease::None, requests: Vec::new(), answers: Vec::new() };
        Self { now: Instant::now(), gateways: vec![gateway; NODES], keys: BTreeMap::new(), emptied: None }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Wait(millis) => self.now += Duration::from_millis(millis),
            Step::Send(node) => self.gateways[node].requests.push(self.now),
            Step::Arrive(node) => {
                if !self.gateways[node].requests.is_empty() {
                    let sent = self.gateways[node].requests.remove(0);
                    self.keys.insert(node, self.now + LEASE);
                    self.gateways[node].answers.push(sent);
                }
            }
            Step::Answer(node) => {
                if !self.gateways[node].answers.is_empty() {
                    let sent = self.gateways[node].answers.remove(0);
                    let gateway = &mut self.gateways[node];
                    gateway.lease = gateway.lease.renewed(sent);
                }
            }
            Step::Lose(node) => {
                self.gateways[node].requests.clear();
                self.gateways[node].answers.clear();
            }
            Step::Empty => {
                self.keys.clear();
                self.emptied = Some(self.now);
            }
        }
    }

    /// Whether Redis tells others that this gateway lives.
    fn is_seen(&self, node: usize) -> bool {
        self.keys.get(&node).is_some_and(|until| self.now < *until)
    }
}

proptest! {
    /// A restart of an empty Redis ends every key at once; it is the one case in which others see the end first, and the
    /// directory is empty then too, so that they find no session to take.
    #[test]
    fn whoever_believes_in_its_lease_is_seen_by_the_others(steps in prop::collection::vec(step(), 1..200)) {
        let mut world = World::new();
        for step in &steps {
            world.take(step);
            for node in 0..NODES {
                let is_sure = world.gateways[node].lease.runs(world.now);
                let was_emptied = world.emptied.is_some_and(|at| world.now < at + LEASE);
                prop_assert!(!is_sure || world.is_seen(node) || was_emptied, "{node} after {step:?}");
            }
        }
    }

    #[test]
    fn a_lease_only_grows_by_answers_and_ends_for_good_when_replaced(sent in prop::collection::vec(0_u64..10_000, 1..20)) {
        let start = Instant::now();
        let mut lease = NodeLease::None;
        let mut latest = 0;
        for millis in sent {
            lease = lease.renewed(start + Duration::from_millis(millis));
            latest = latest.max(millis);
            let end = start + Duration::from_millis(latest) + LEASE.saturating_sub(super::MARGIN);
            prop_assert!(lease.runs(end.checked_sub(Duration::from_millis(1)).unwrap()) && !lease.runs(end));
        }
        prop_assert!(!NodeLease::Replaced.renewed(start).runs(start));
    }
}
