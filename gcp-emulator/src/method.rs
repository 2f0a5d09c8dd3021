//! The methods the servers answer.

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident => $path:literal,)*) => {
        /// A gRPC method of one of the embedded services.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Method {
            $($(#[$doc])* $name,)*
        }

        impl Method {
            /// Every method that is answered, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The request path of the method, `/package.Service/Method`.
            #[must_use]
            pub const fn path(self) -> &'static str {
                match self {
                    $(Self::$name => $path,)*
                }
            }

            /// The method's own name, without its service.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// The method of a request path, if it is one that is answered.
            #[must_use]
            pub fn from_path(path: &str) -> Option<Self> {
                match path {
                    $($path => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

methods! {
    /// `Publisher.CreateTopic`.
    CreateTopic => "/google.pubsub.v1.Publisher/CreateTopic",
    /// `Publisher.UpdateTopic`.
    UpdateTopic => "/google.pubsub.v1.Publisher/UpdateTopic",
    /// `Publisher.Publish`.
    Publish => "/google.pubsub.v1.Publisher/Publish",
    /// `Publisher.GetTopic`.
    GetTopic => "/google.pubsub.v1.Publisher/GetTopic",
    /// `Publisher.ListTopics`.
    ListTopics => "/google.pubsub.v1.Publisher/ListTopics",
    /// `Publisher.ListTopicSubscriptions`.
    ListTopicSubscriptions => "/google.pubsub.v1.Publisher/ListTopicSubscriptions",
    /// `Publisher.ListTopicSnapshots`.
    ListTopicSnapshots => "/google.pubsub.v1.Publisher/ListTopicSnapshots",
    /// `Publisher.DeleteTopic`.
    DeleteTopic => "/google.pubsub.v1.Publisher/DeleteTopic",
    /// `Publisher.DetachSubscription`.
    DetachSubscription => "/google.pubsub.v1.Publisher/DetachSubscription",
    /// `Subscriber.CreateSubscription`.
    CreateSubscription => "/google.pubsub.v1.Subscriber/CreateSubscription",
    /// `Subscriber.GetSubscription`.
    GetSubscription => "/google.pubsub.v1.Subscriber/GetSubscription",
    /// `Subscriber.UpdateSubscription`.
    UpdateSubscription => "/google.pubsub.v1.Subscriber/UpdateSubscription",
    /// `Subscriber.ListSubscriptions`.
    ListSubscriptions => "/google.pubsub.v1.Subscriber/ListSubscriptions",
    /// `Subscriber.DeleteSubscription`.
    DeleteSubscription => "/google.pubsub.v1.Subscriber/DeleteSubscription",
    /// `Subscriber.ModifyAckDeadline`.
    ModifyAckDeadline => "/google.pubsub.v1.Subscriber/ModifyAckDeadline",
    /// `Subscriber.Acknowledge`.
    Acknowledge => "/google.pubsub.v1.Subscriber/Acknowledge",
    /// `Subscriber.Pull`.
    Pull => "/google.pubsub.v1.Subscriber/Pull",
    /// `Subscriber.StreamingPull`.
    StreamingPull => "/google.pubsub.v1.Subscriber/StreamingPull",
    /// `Subscriber.ModifyPushConfig`.
    ModifyPushConfig => "/google.pubsub.v1.Subscriber/ModifyPushConfig",
    /// `Subscriber.GetSnapshot`.
    GetSnapshot => "/google.pubsub.v1.Subscriber/GetSnapshot",
    /// `Subscriber.ListSnapshots`.
    ListSnapshots => "/google.pubsub.v1.Subscriber/ListSnapshots",
    /// `Subscriber.CreateSnapshot`.
    CreateSnapshot => "/google.pubsub.v1.Subscriber/CreateSnapshot",
    /// `Subscriber.UpdateSnapshot`.
    UpdateSnapshot => "/google.pubsub.v1.Subscriber/UpdateSnapshot",
    /// `Subscriber.DeleteSnapshot`.
    DeleteSnapshot => "/google.pubsub.v1.Subscriber/DeleteSnapshot",
    /// `Subscriber.Seek`.
    Seek => "/google.pubsub.v1.Subscriber/Seek",
    /// `CloudTasks.ListQueues`.
    ListQueues => "/google.cloud.tasks.v2.CloudTasks/ListQueues",
    /// `CloudTasks.GetQueue`.
    GetQueue => "/google.cloud.tasks.v2.CloudTasks/GetQueue",
    /// `CloudTasks.CreateQueue`.
    CreateQueue => "/google.cloud.tasks.v2.CloudTasks/CreateQueue",
    /// `CloudTasks.UpdateQueue`.
    UpdateQueue => "/google.cloud.tasks.v2.CloudTasks/UpdateQueue",
    /// `CloudTasks.DeleteQueue`.
    DeleteQueue => "/google.cloud.tasks.v2.CloudTasks/DeleteQueue",
    /// `CloudTasks.PurgeQueue`.
    PurgeQueue => "/google.cloud.tasks.v2.CloudTasks/PurgeQueue",
    /// `CloudTasks.PauseQueue`.
    PauseQueue => "/google.cloud.tasks.v2.CloudTasks/PauseQueue",
    /// `CloudTasks.ResumeQueue`.
    ResumeQueue => "/google.cloud.tasks.v2.CloudTasks/ResumeQueue",
    /// `CloudTasks.ListTasks`.
    ListTasks => "/google.cloud.tasks.v2.CloudTasks/ListTasks",
    /// `CloudTasks.GetTask`.
    GetTask => "/google.cloud.tasks.v2.CloudTasks/GetTask",
    /// `CloudTasks.CreateTask`.
    CreateTask => "/google.cloud.tasks.v2.CloudTasks/CreateTask",
    /// `CloudTasks.DeleteTask`.
    DeleteTask => "/google.cloud.tasks.v2.CloudTasks/DeleteTask",
    /// `CloudTasks.RunTask`.
    RunTask => "/google.cloud.tasks.v2.CloudTasks/RunTask",
    /// `CloudTasks.BatchCreateTasks`.
    BatchCreateTasks => "/google.cloud.tasks.v2.CloudTasks/BatchCreateTasks",
    /// `Operations.GetOperation`.
    GetOperation => "/google.longrunning.Operations/GetOperation",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_leads_back_to_its_method() {
        for method in Method::ALL {
            assert_eq!(Method::from_path(method.path()), Some(*method));
            assert!(method.path().ends_with(&format!("/{}", method.name())));
        }
        assert_eq!(
            Method::from_path("/google.pubsub.v1.Publisher/Nonsense"),
            None
        );
    }
}
