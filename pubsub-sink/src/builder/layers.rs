//! Messages put together from parts.

use connector_core::{BoxError, Encode};

use super::SinkBuilder;
use crate::PublishMessage;

impl<R: 'static> SinkBuilder<R> {
    /// Adds attributes to each message that the encoder makes.
    ///
    /// One of a name that the message has already replaces it. For encoders that only know the
    /// payload, such as those of [`PubsubSink::payload`](crate::PubsubSink::payload).
    pub fn attributes<K, V, A>(self, mut attributes: impl FnMut(&R) -> A + Send + 'static) -> Self
    where
        K: Into<String>,
        V: Into<String>,
        A: IntoIterator<Item = (K, V)>,
    {
        self.layer(move |record, message| {
            let attributes = attributes(record).into_iter();
            attributes.fold(message, |message, (key, value)| {
                message.attribute(key, value)
            })
        })
    }

    /// Gives each message that the encoder makes an ordering key. None, like an empty key, leaves
    /// the message as it is.
    ///
    /// Needs [`message_ordering(true)`](Self::message_ordering).
    pub fn ordering_key<K: Into<String>>(
        self,
        mut key: impl FnMut(&R) -> Option<K> + Send + 'static,
    ) -> Self {
        self.layer(move |record, message| {
            match key(record).map(Into::into).filter(|key| !key.is_empty()) {
                Some(key) => message.ordering_key(key),
                None => message,
            }
        })
    }

    fn layer(
        mut self,
        mut add: impl FnMut(&R, PublishMessage) -> PublishMessage + Send + 'static,
    ) -> Self {
        let mut encoder = self.encoder;
        let layered = move |record: &R| -> Result<Option<PublishMessage>, BoxError> {
            let message = encoder.encode(record)?;
            Ok(message.map(|message| add(record, message)))
        };
        let layered: Box<dyn Encode<R, PublishMessage>> = Box::new(layered);
        self.encoder = layered;
        self
    }
}
