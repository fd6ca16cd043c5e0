//! The queues of an agent: nobody over the limits, first come first served for each, turns between them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use gembridge_core::admission::{
    Admission, AdmissionLimits, AdmissionStatus, GuestLimits, Permit, QueueFull, Share, Shares, Waiter,
};
use gembridge_core::model::Principal;
use proptest::prelude::*;

fn queue(running: usize, waiting: usize) -> Admission {
    Admission::new(AdmissionLimits { running, waiting, ..AdmissionLimits::default() })
}

fn who(name: &str) -> Principal {
    Principal::new(name)
}

/// The permit, if it is there.
fn ready(waiter: &mut Waiter) -> Option<Permit> {
    match Pin::new(waiter).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(permit) => Some(permit),
        Poll::Pending => None,
    }
}

/// Waits at the head of a session, even where nobody is before it.
fn try_enter(queue: &Admission, name: &str) -> Result<Waiter, QueueFull> {
    let mut waiter = queue.wait(&who(name))?;
    waiter.enter();
    Ok(waiter)
}

fn enter(queue: &Admission, name: &str) -> Waiter {
    try_enter(queue, name).expect("there is room to wait")
}

/// Runs at once, or waits.
fn admit_or_wait(queue: &Admission, name: &str) -> Result<Result<Permit, Waiter>, QueueFull> {
    match queue.try_admit(&who(name)) {
        Some(permit) => Ok(Ok(permit)),
        None => try_enter(queue, name).map(Err),
    }
}

#[test]
fn r19_exactly_the_surplus_is_refused_and_told_when_to_come_back() {
    let queue = queue(3, 4);
    let entered: Vec<_> = (0..12).map(|_| admit_or_wait(&queue, "ann")).collect();
    assert_eq!(entered.iter().filter(|result| result.is_err()).count(), 5);
    assert_eq!(queue.status(), AdmissionStatus { running: 3, waiting: 4 });
    let refused = entered.iter().find_map(|result| result.as_ref().err()).expect("some were refused");
    assert!(!refused.retry_after.is_zero());
}

#[test]
fn lines_take_turns_and_each_is_first_come_first_served() {
    let queue = queue(1, 10);
    let running = ready(&mut enter(&queue, "ann"));
    assert!(running.is_some());
    let names = ["ann", "ann", "ann", "bob", "bob", "cat"];
    let mut waiting: Vec<(usize, &str, Waiter)> =
        names.iter().enumerate().map(|(at, name)| (at, *name, enter(&queue, name))).collect();
    let mut order = Vec::new();
    let mut current = running;
    while !waiting.is_empty() {
        drop(current.take());
        let at = waiting.iter_mut().position(|(_, _, waiter)| {
            current = ready(waiter);
            current.is_some()
        });
        let (number, name, _) = waiting.remove(at.expect("somebody is next"));
        order.push(format!("{name}{number}"));
    }
    assert_eq!(order, ["ann0", "bob3", "cat5", "ann1", "bob4", "ann2"]);
}

#[test]
fn a_waiter_that_leaves_is_not_waited_for() {
    let queue = queue(1, 10);
    let running = ready(&mut enter(&queue, "ann"));
    let gone = enter(&queue, "bob");
    let mut last = enter(&queue, "cat");
    drop(gone);
    assert_eq!(queue.status().waiting, 1);
    drop(running);
    assert!(ready(&mut last).is_some());
}

#[test]
fn a_waiter_that_leaves_just_as_it_is_admitted_gives_its_place_back() {
    let queue = queue(1, 10);
    let running = ready(&mut enter(&queue, "ann"));
    let admitted = enter(&queue, "bob");
    let mut next = enter(&queue, "cat");
    drop(running);
    assert!(ready(&mut next).is_none());
    drop(admitted);
    assert!(ready(&mut next).is_some());
    assert_eq!(queue.status(), AdmissionStatus { running: 0, waiting: 0 });
}

#[test]
fn f6_guests_leave_places_to_each_other_and_to_the_operator() {
    let is_guest = Arc::new(|principal: &Principal| principal.as_str() != "op");
    let guests = Some(GuestLimits { each: 2, together: 3, is_guest });
    let queue = Admission::new(AdmissionLimits { running: 4, guests, ..AdmissionLimits::default() });
    let mut entered: Vec<_> = ["ann", "ann", "ann", "bob", "bob", "op", "op"].map(|name| enter(&queue, name)).into();
    let mut permits: Vec<_> = entered.iter_mut().map(ready).collect();
    let has: Vec<_> = permits.iter().map(Option::is_some).collect();
    assert_eq!(has, [true, true, false, true, false, true, false]);
    // What the operator gives back is not for guests, and what a guest gives back goes to the operator's turn in line.
    permits[5] = None;
    assert!(ready(&mut entered[6]).is_some_and(|again| {
        permits[5] = Some(again);
        true
    }));
    permits[0] = None;
    let third = ready(&mut entered[2]);
    assert!(third.is_some() && ready(&mut entered[4]).is_none());
}

#[test]
fn shares_set_limits_and_priorities() {
    let shares = Shares::from_iter([
        (who("slow"), Share { running: Some(1), waiting: Some(1), ..Share::default() }),
        (who("vip"), Share { priority: 1, ..Share::default() }),
    ]);
    let queue = Admission::new(AdmissionLimits { running: 2, waiting: 10, shares, ..AdmissionLimits::default() });
    let mut first = enter(&queue, "slow");
    let mut second = enter(&queue, "slow");
    let slow = ready(&mut first);
    assert!(slow.is_some() && ready(&mut second).is_none(), "one at a time, though there is room");
    assert!(queue.wait(&who("slow")).is_err() && queue.check(&who("slow")).is_err(), "and one in the queue");
    assert!(queue.check(&who("ann")).is_ok());
    let ann = ready(&mut enter(&queue, "ann"));
    let mut other = enter(&queue, "bob");
    let mut vip = enter(&queue, "vip");
    drop(ann);
    assert!(ready(&mut other).is_none());
    let vip = ready(&mut vip);
    assert!(vip.is_some(), "a higher priority goes first");
    drop(vip);
    assert!(ready(&mut other).is_some());
}

#[test]
fn a_share_that_changes_holds_for_whoever_comes_next() {
    let shares = Shares::default();
    let queue = Admission::new(AdmissionLimits { running: 4, shares: shares.clone(), ..AdmissionLimits::default() });
    let first = queue.try_admit(&who("ann"));
    let second = queue.try_admit(&who("ann"));
    assert!(first.is_some() && second.is_some());
    shares.replace(HashMap::from([(who("ann"), Share { running: Some(1), ..Share::default() })]));
    let mut next = enter(&queue, "ann");
    drop(first);
    assert!(ready(&mut next).is_none(), "one at a time from now on");
    drop(second);
    assert!(ready(&mut next).is_some());
}

#[test]
fn whoever_waits_for_its_session_is_counted_and_overtaken() {
    let queue = queue(1, 2);
    let running = queue.try_admit(&who("ann"));
    let mut behind = queue.wait(&who("ann")).expect("room to wait");
    assert!(running.is_some() && ready(&mut behind).is_none());
    let mut bob = enter(&queue, "bob");
    assert_eq!(queue.status(), AdmissionStatus { running: 1, waiting: 2 });
    drop(running);
    let bob = ready(&mut bob);
    assert!(bob.is_some(), "it competes for no permit");
    behind.enter();
    assert!(ready(&mut behind).is_none());
    drop(bob);
    assert!(ready(&mut behind).is_some());
    assert_eq!(queue.status(), AdmissionStatus::default());
}

#[derive(Clone, Debug)]
enum Step {
    Enter(usize),
    /// The n-th waiter looks whether it is its turn.
    Look(usize),
    Leave(usize),
    /// The n-th that runs is done.
    Finish(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..4_usize).prop_map(Step::Enter),
        3 => (0..8_usize).prop_map(Step::Look),
        1 => (0..8_usize).prop_map(Step::Leave),
        2 => (0..8_usize).prop_map(Step::Finish),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_limits_hold_order_is_kept_and_nobody_is_forgotten(
        steps in prop::collection::vec(step(), 0..80),
        running in 1..4_usize,
        waiting in 0..4_usize,
    ) {
        let names = ["a", "b", "c", "d"];
        let queue = queue(running, waiting);
        let mut lines: BTreeMap<usize, VecDeque<Waiter>> = BTreeMap::new();
        let mut permits: Vec<Permit> = Vec::new();
        for step in steps {
            match step {
                Step::Enter(who_) => match admit_or_wait(&queue, names[who_]) {
                    Ok(Ok(permit)) => permits.push(permit),
                    Ok(Err(waiter)) => lines.entry(who_).or_default().push_back(waiter),
                    Err(full) => prop_assert!(full.waiting >= waiting),
                },
                Step::Look(at) => {
                    if let Some(line) = lines.get_mut(&(at % 4)) {
                        // Those behind the first may hold a place only if the first does.
                        let mut first_refused = false;
                        let mut rest = VecDeque::new();
                        for mut waiter in line.drain(..) {
                            if let Some(permit) = ready(&mut waiter) {
                                prop_assert!(!first_refused, "somebody jumped the line");
                                permits.push(permit);
                            } else {
                                first_refused = true;
                                rest.push_back(waiter);
                            }
                        }
                        *line = rest;
                    }
                }
                Step::Leave(at) => {
                    if let Some(line) = lines.get_mut(&(at % 4)) {
                        line.pop_back();
                    }
                }
                Step::Finish(at) => {
                    if !permits.is_empty() {
                        permits.remove(at % permits.len());
                    }
                }
            }
            let status = queue.status();
            prop_assert!(status.running <= running);
            prop_assert!(status.running >= permits.len());
        }
        // Once everybody is served or gone, nothing is left behind.
        permits.clear();
        loop {
            let mut moved = false;
            for line in lines.values_mut() {
                while let Some(waiter) = line.front_mut() {
                    let Some(permit) = ready(waiter) else { break };
                    drop(permit);
                    line.pop_front();
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        prop_assert!(lines.values().all(VecDeque::is_empty), "somebody waits for ever");
        prop_assert_eq!(queue.status(), AdmissionStatus { running: 0, waiting: 0 });
    }
}
