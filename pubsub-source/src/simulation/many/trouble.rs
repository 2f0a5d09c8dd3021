//! Faults that come by themselves.

use std::time::Duration;

use super::{
    chance::Rates,
    event::{Event, Place, Word},
    world::World,
};

impl World {
    pub(super) fn trouble(&mut self) {
        self.schedule(Duration::from_millis(500), Event::Trouble);
        if self.chance.strikes(|rates: &Rates| rates.end_stream) {
            let lines = self.service.lines();
            if !lines.is_empty() {
                self.chance.count("a stream ended");
                let line = self.chance.pick(&lines);
                if self.chance.one_in(2) {
                    self.service.half_close(self.now, line);
                } else {
                    self.service.hang_up(self.now, line);
                    self.send_to_client(line, Event::End(line));
                }
            }
        }
        if self.chance.strikes(|rates: &Rates| rates.suspend) {
            let jobs = self.jobs.values();
            let places: Vec<Place> = jobs.flat_map(|job| job.places()).collect();
            if !places.is_empty() {
                self.chance.count("the process was suspended");
                let place = self.chance.pick(&places);
                self.suspend(place, 60_000);
            }
        }
        if self.starting || self.newest().is_none_or(|job| job.ending) {
            return;
        }
        let newest = self.runs;
        if self.chance.strikes(|rates: &Rates| rates.crash) {
            self.chance.count("a crash");
            if self.jobs.len() > 1 {
                self.chance.count("a crash while a predecessor went on");
            }
            self.crash(newest);
            self.succeed(10_000);
        } else if self.chance.strikes(|rates: &Rates| rates.fail_over) {
            self.fail_over();
        } else if self.chance.strikes(|rates: &Rates| rates.close) {
            self.chance.count("an orderly close");
            self.end(newest);
            self.succeed(10_000);
        }
    }

    /// Whoever watches over the job takes it for dead, and it is not.
    fn fail_over(&mut self) {
        self.chance.count("a predecessor went on");
        let places = self.newest().map(|job| job.places()).unwrap_or_default();
        if self.chance.one_in(2) {
            self.chance.count("a predecessor was suspended");
            for place in places {
                self.suspend(place, 40_000);
            }
        }
        self.succeed(3000);
    }

    fn suspend(&mut self, place: Place, most: u64) {
        let pause = self.chance.millis(1_000..most);
        let until = self.now + pause;
        if let Some(reader) = self.reader(place) {
            reader.suspended_until = reader.suspended_until.max(until);
        }
        self.schedule(pause, Event::Wake(place));
    }

    /// The job is started again, within so many milliseconds.
    fn succeed(&mut self, within: u64) {
        self.starting = true;
        let pause = self.chance.millis(10..within);
        self.schedule(pause, Event::Start);
    }

    /// The readers of a run end in good order.
    pub(super) fn end(&mut self, number: u32) {
        if let Some(job) = self.jobs.get_mut(&number) {
            job.ending = true;
        }
        self.tell_all(number, Word::Drop);
    }

    /// All processes of a run are gone, from one moment to the next.
    pub(super) fn crash(&mut self, number: u32) {
        let places = self.jobs.get(&number).map(|job| job.places());
        for place in places.unwrap_or_default() {
            self.retire(place);
        }
        self.jobs.remove(&number);
    }

    /// Takes the last figures of a reader that is over. The server notices that it is gone, line by
    /// line, now or later.
    pub(super) fn retire(&mut self, place: Place) {
        let at = self.at();
        let Some(job) = self.jobs.get_mut(&place.0) else {
            return;
        };
        if let Some(reader) = job.readers.remove(&place.1) {
            for split in &reader.splits {
                let recognised = split.machine.stats(at).recognised;
                self.chance
                    .count_many("a redelivery recognised after a restore", recognised);
            }
        }
        for line in self.service.lines() {
            if line.0.place == place {
                let delay = self.chance.millis(1..3000);
                self.schedule(delay, Event::HangUp(line));
            }
        }
    }
}
