//! Messages that a durable epoch names although the service may deliver them again.

#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use hashbrown::HashTable;

use super::key::MessageKey;

/// Ids that entered the window together.
#[derive(Debug)]
struct Group {
    number: u64,
    ids: Arc<Vec<MessageKey>>,
    /// One bit per id that left the window.
    gone: Vec<u64>,
    left: usize,
    /// A delivery published later than this is another message that happens to have the same id:
    /// ids are unique per topic only, and Google's emulator starts again at "1".
    published_by: i64,
    /// How much open-stream time the window's clock shows when the group ends.
    ends: Duration,
}

/// A group as a saved state names it. Shares the ids; later departures do not show.
#[derive(Debug, Clone)]
pub(crate) struct SeenView {
    ids: Arc<Vec<MessageKey>>,
    gone: Vec<u64>,
    pub(crate) published_by: i64,
    /// The open-stream time that was left to the group.
    pub(crate) remaining: Duration,
}

impl SeenView {
    /// The ids that were in the window.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &MessageKey> + '_ {
        let here = |(index, id): (usize, _)| (!bit(&self.gone, index)).then_some(id);
        self.ids.iter().enumerate().filter_map(here)
    }
}

/// The seen window.
///
/// An id in it is acknowledged on arrival and not handed out. Only ids that are part of a durable
/// epoch may enter. An entry is used up by the first acknowledgement that is confirmed: a second
/// arrival after that is a replay that somebody asked for. Lifetimes count only while a stream is
/// open: an id cannot come again while nothing is received.
#[derive(Debug)]
pub(super) struct Seen {
    groups: VecDeque<Group>,
    next_group: u64,
    /// Ids that entered since the last cut; frozen into a group by the next view.
    index: HashTable<(u64, u32)>,
    limit: usize,
    len: usize,
    /// Open-stream time so far, and since when it runs on.
    clock: Duration,
    running_since: Option<Instant>,
    overflowed: u64,
}

impl Seen {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            groups: VecDeque::new(),
            next_group: 0,
            index: HashTable::new(),
            limit,
            len: 0,
            clock: Duration::ZERO,
            running_since: None,
            overflowed: 0,
        }
    }

    /// Lets ids in for `lifetime` of open-stream time.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        ids: Vec<MessageKey>,
        published_by: i64,
        lifetime: Duration,
    ) {
        if ids.is_empty() {
            return;
        }
        let number = self.next_group;
        self.next_group += 1;
        let count = ids.len();
        let mut group = Group {
            number,
            gone: vec![0; count.div_ceil(64)],
            left: count,
            ids: Arc::new(ids),
            published_by,
            ends: self.time(now) + lifetime,
        };
        for (at, id) in (0u32..).zip(group.ids.iter()) {
            let hash = id.hash();
            let groups = &self.groups;
            let found = self
                .index
                .find_mut(hash, |slot| id_in(groups, *slot) == Some(id));
            if let Some(slot) = found {
                // The younger group stands for it: its guard and its lifetime are the newer ones.
                let older = std::mem::replace(slot, (number, at));
                if let Some(older_group) = group_of(&mut self.groups, older.0) {
                    set(&mut older_group.gone, older.1 as usize);
                    older_group.left -= 1;
                }
                continue;
            }
            let new_group = &group;
            let twice = self.index.find(hash, |slot| {
                slot.0 == number && new_group.ids.get(slot.1 as usize) == Some(id)
            });
            if twice.is_some() {
                set(&mut group.gone, at as usize);
                group.left -= 1;
                continue;
            }
            self.len += 1;
            let (groups, fresh) = (&self.groups, &group.ids);
            self.index.insert_unique(hash, (number, at), |slot| {
                let id = if slot.0 == number {
                    fresh.get(slot.1 as usize)
                } else {
                    id_in(groups, *slot)
                };
                id.map_or(0, MessageKey::hash)
            });
        }
        self.groups.push_back(group);
        self.drop_empty();
        self.shed();
    }

    /// Whether a delivery of `id`, published at `published`, is to be acknowledged and not handed
    /// out.
    pub(super) fn suppresses(&self, id: &MessageKey, published: i64) -> bool {
        let groups = &self.groups;
        self.index
            .find(id.hash(), |slot| id_in(groups, *slot) == Some(id))
            .and_then(|slot| find_group(groups, slot.0))
            .is_some_and(|group| published <= group.published_by)
    }

    /// Uses an entry up.
    pub(super) fn remove(&mut self, id: &MessageKey) -> bool {
        let groups = &self.groups;
        let Ok(entry) = self
            .index
            .find_entry(id.hash(), |slot| id_in(groups, *slot) == Some(id))
        else {
            return false;
        };
        let ((number, at), _) = entry.remove();
        if let Some(group) = group_of(&mut self.groups, number) {
            set(&mut group.gone, at as usize);
            group.left -= 1;
        }
        self.len -= 1;
        self.drop_empty();
        true
    }

    /// Empties the window.
    pub(super) fn clear(&mut self) {
        self.groups.clear();
        self.index.clear();
        self.len = 0;
    }

    /// A stream opened while none was open, or the last one ended.
    pub(super) fn handle_open(&mut self, now: Instant, open: bool) {
        match (open, self.running_since) {
            (true, None) => self.running_since = Some(now),
            (false, Some(_)) => {
                self.clock = self.time(now);
                self.running_since = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// Drops the groups whose time is up.
    pub(super) fn expire(&mut self, now: Instant) {
        let time = self.time(now);
        while let Some(at) = self.groups.iter().position(|group| group.ends <= time) {
            self.drop_group(at);
        }
    }

    /// When the next group's time is up, if no stream closes before.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let since = self.running_since?;
        let ends = self.groups.iter().map(|group| group.ends).min()?;
        since.checked_add(ends.saturating_sub(self.clock))
    }

    /// What a saved state names.
    pub(super) fn view(&self, now: Instant) -> Vec<SeenView> {
        let time = self.time(now);
        let view = |group: &Group| SeenView {
            ids: Arc::clone(&group.ids),
            gone: group.gone.clone(),
            published_by: group.published_by,
            remaining: group.ends.saturating_sub(time),
        };
        self.groups.iter().map(view).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Ids that had to leave early because the window was full.
    pub(super) fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// Open-stream time so far.
    pub(super) fn time(&self, now: Instant) -> Duration {
        let running = self
            .running_since
            .map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        self.clock + running
    }

    /// Keeps the window within its bound: the oldest leave first.
    fn shed(&mut self) {
        while self.len > self.limit && self.groups.len() > 1 {
            self.overflowed += self.groups[0].left as u64;
            self.drop_group(0);
        }
        while self.len > self.limit {
            let Some(group) = self.groups.front() else {
                return;
            };
            let ids = Arc::clone(&group.ids);
            let excess = self.len - self.limit;
            let here: Vec<usize> = (0..ids.len())
                .filter(|at| !bit(&group.gone, *at))
                .take(excess)
                .collect();
            for at in here {
                self.overflowed += 1;
                self.remove(&ids[at]);
            }
        }
    }

    fn drop_group(&mut self, at: usize) {
        let group = &self.groups[at];
        let number = group.number;
        for (index, id) in (0u32..).zip(group.ids.iter()) {
            if bit(&group.gone, index as usize) {
                continue;
            }
            if let Ok(entry) = self
                .index
                .find_entry(id.hash(), |slot| *slot == (number, index))
            {
                entry.remove();
            }
        }
        self.len -= group.left;
        self.groups.remove(at);
    }

    fn drop_empty(&mut self) {
        self.groups.retain(|group| group.left > 0);
    }

    /// Checks what only this type can break.
    #[cfg(any(test, fuzzing))]
    pub(super) fn check_invariants(&self) {
        let mut len = 0;
        for group in &self.groups {
            let here = (0..group.ids.len())
                .filter(|at| !bit(&group.gone, *at))
                .count();
            assert_eq!(here, group.left);
            assert!(here > 0);
            len += here;
        }
        assert_eq!(len, self.len);
        assert_eq!(len, self.index.len());
        assert!(self.len <= self.limit);
    }
}

fn find_group(groups: &VecDeque<Group>, number: u64) -> Option<&Group> {
    let at = groups
        .binary_search_by_key(&number, |group| group.number)
        .ok()?;
    groups.get(at)
}

fn group_of(groups: &mut VecDeque<Group>, number: u64) -> Option<&mut Group> {
    let at = groups
        .binary_search_by_key(&number, |group| group.number)
        .ok()?;
    groups.get_mut(at)
}

fn id_in(groups: &VecDeque<Group>, slot: (u64, u32)) -> Option<&MessageKey> {
    find_group(groups, slot.0)?.ids.get(slot.1 as usize)
}

fn bit(words: &[u64], index: usize) -> bool {
    words[index / 64] >> (index % 64) & 1 == 1
}

fn set(words: &mut [u64], index: usize) {
    words[index / 64] |= 1 << (index % 64);
}
