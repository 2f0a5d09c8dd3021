//! The gRPC side of Cloud Tasks.

use std::time::Duration;

use tonic::{Request, Response, Status, async_trait};

use crate::call::Body;
use crate::cloudtasks::proto::{
    BatchCreateTasksRequest, CreateQueueRequest, CreateTaskRequest, DeleteQueueRequest,
    DeleteTaskRequest, GetOperationRequest, GetQueueRequest, GetTaskRequest, ListQueuesRequest,
    ListQueuesResponse, ListTasksRequest, ListTasksResponse, Operation, PauseQueueRequest, Queue,
    ResumeQueueRequest, Task,
};
use crate::cloudtasks::state::TaskRefusal;
use crate::front::Front;
use crate::method::Method;

/// Server glue made by the build script.
#[allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::pedantic,
    clippy::restriction
)]
mod generated {
    include!(concat!(
        env!("OUT_DIR"),
        "/google.cloud.tasks.v2.CloudTasks.rs"
    ));
    include!(concat!(
        env!("OUT_DIR"),
        "/google.longrunning.Operations.rs"
    ));
}

pub(crate) use generated::cloud_tasks_server::CloudTasksServer;
pub(crate) use generated::operations_server::OperationsServer;

use generated::cloud_tasks_server::CloudTasks;
use generated::operations_server::Operations;

/// The longest a client may say it waits (recorded from the service).
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// A refusal on the wire.
fn refused(refusal: &TaskRefusal) -> Status {
    Status::new(
        tonic::Code::from_i32(refusal.code().number()),
        refusal.to_string(),
    )
}

/// Refuses a call whose client waits longer than the service works on one.
fn check_wait<M>(request: &Request<M>) -> Result<(), Status> {
    let given = request
        .metadata()
        .get("grpc-timeout")
        .and_then(|value| value.to_str().ok());
    let too_long = given
        .and_then(timeout)
        .is_some_and(|wait| wait > LONGEST_WAIT);
    if too_long {
        Err(refused(&TaskRefusal::Deadline))
    } else {
        Ok(())
    }
}

/// Reads a `grpc-timeout`: up to eight digits and a unit (gRPC over HTTP/2).
fn timeout(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    match unit {
        'H' => Some(Duration::from_secs(number.checked_mul(3600)?)),
        'M' => Some(Duration::from_secs(number.checked_mul(60)?)),
        'S' => Some(Duration::from_secs(number)),
        'm' => Some(Duration::from_millis(number)),
        'u' => Some(Duration::from_micros(number)),
        'n' => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

/// Serves `google.cloud.tasks.v2.CloudTasks`.
#[derive(Debug, Clone)]
pub(crate) struct CloudTasksService {
    front: Front,
}

impl CloudTasksService {
    pub(crate) const fn new(front: Front) -> Self {
        Self { front }
    }
}

#[async_trait]
impl CloudTasks for CloudTasksService {
    async fn list_queues(
        &self,
        request: Request<ListQueuesRequest>,
    ) -> Result<Response<ListQueuesResponse>, Status> {
        let describe = |request: &ListQueuesRequest| Body::Named(request.parent.clone());
        self.front
            .unary(Method::ListQueues, request, describe, |core, _, request| {
                let ListQueuesRequest {
                    parent,
                    page_size,
                    page_token,
                    ..
                } = request;
                let (queues, next_page_token) = core
                    .tasks
                    .list_queues(&parent, page_size, &page_token)
                    .map_err(|refusal| refused(&refusal))?;
                Ok(ListQueuesResponse {
                    queues,
                    next_page_token,
                })
            })
            .await
    }

    async fn get_queue(
        &self,
        request: Request<GetQueueRequest>,
    ) -> Result<Response<Queue>, Status> {
        let describe = |request: &GetQueueRequest| Body::Named(request.name.clone());
        self.front
            .unary(Method::GetQueue, request, describe, |core, _, request| {
                core.tasks
                    .queue(&request.name)
                    .map_err(|refusal| refused(&refusal))
            })
            .await
    }

    async fn create_queue(
        &self,
        request: Request<CreateQueueRequest>,
    ) -> Result<Response<Queue>, Status> {
        let describe = |request: &CreateQueueRequest| Body::Named(request.parent.clone());
        self.front
            .unary(
                Method::CreateQueue,
                request,
                describe,
                |core, now, request| {
                    core.tasks
                        .create_queue(now, request)
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }

    async fn delete_queue(
        &self,
        request: Request<DeleteQueueRequest>,
    ) -> Result<Response<()>, Status> {
        let describe = |request: &DeleteQueueRequest| Body::Named(request.name.clone());
        self.front
            .unary(
                Method::DeleteQueue,
                request,
                describe,
                |core, now, request| {
                    core.tasks
                        .delete_queue(now, &request.name)
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }

    async fn pause_queue(
        &self,
        request: Request<PauseQueueRequest>,
    ) -> Result<Response<Queue>, Status> {
        let describe = |request: &PauseQueueRequest| Body::Named(request.name.clone());
        self.front
            .unary(Method::PauseQueue, request, describe, |core, _, request| {
                core.tasks
                    .set_running(&request.name, false)
                    .map_err(|refusal| refused(&refusal))
            })
            .await
    }

    async fn resume_queue(
        &self,
        request: Request<ResumeQueueRequest>,
    ) -> Result<Response<Queue>, Status> {
        let describe = |request: &ResumeQueueRequest| Body::Named(request.name.clone());
        self.front
            .unary(
                Method::ResumeQueue,
                request,
                describe,
                |core, _, request| {
                    core.tasks
                        .set_running(&request.name, true)
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }

    async fn list_tasks(
        &self,
        request: Request<ListTasksRequest>,
    ) -> Result<Response<ListTasksResponse>, Status> {
        let describe = |request: &ListTasksRequest| Body::Named(request.parent.clone());
        self.front
            .unary(Method::ListTasks, request, describe, |core, _, request| {
                let ListTasksRequest {
                    parent,
                    response_view,
                    page_size,
                    page_token,
                } = request;
                let (tasks, next_page_token) = core
                    .tasks
                    .list_tasks(&parent, response_view, page_size, &page_token)
                    .map_err(|refusal| refused(&refusal))?;
                Ok(ListTasksResponse {
                    tasks,
                    next_page_token,
                })
            })
            .await
    }

    async fn get_task(&self, request: Request<GetTaskRequest>) -> Result<Response<Task>, Status> {
        let describe = |request: &GetTaskRequest| Body::Named(request.name.clone());
        self.front
            .unary(Method::GetTask, request, describe, |core, _, request| {
                core.tasks
                    .task(&request.name, request.response_view)
                    .map_err(|refusal| refused(&refusal))
            })
            .await
    }

    async fn create_task(
        &self,
        request: Request<CreateTaskRequest>,
    ) -> Result<Response<Task>, Status> {
        let wait = check_wait(&request);
        let describe = |request: &CreateTaskRequest| Body::CreateTask(Box::new(request.clone()));
        self.front
            .unary(
                Method::CreateTask,
                request,
                describe,
                |core, now, request| {
                    wait?;
                    core.tasks
                        .create_task(now, request)
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }

    async fn delete_task(
        &self,
        request: Request<DeleteTaskRequest>,
    ) -> Result<Response<()>, Status> {
        let describe = |request: &DeleteTaskRequest| Body::Named(request.name.clone());
        self.front
            .unary(
                Method::DeleteTask,
                request,
                describe,
                |core, now, request| {
                    core.tasks
                        .remove_task(now, &request.name)
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }

    async fn batch_create_tasks(
        &self,
        request: Request<BatchCreateTasksRequest>,
    ) -> Result<Response<Operation>, Status> {
        let wait = check_wait(&request);
        let describe = |request: &BatchCreateTasksRequest| Body::BatchCreateTasks(request.clone());
        self.front
            .unary(
                Method::BatchCreateTasks,
                request,
                describe,
                |core, now, request| {
                    wait?;
                    core.tasks
                        .batch_create(now, request)
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }
}

/// Serves `google.longrunning.Operations`, for batches.
#[derive(Debug, Clone)]
pub(crate) struct OperationsService {
    front: Front,
}

impl OperationsService {
    pub(crate) const fn new(front: Front) -> Self {
        Self { front }
    }
}

#[async_trait]
impl Operations for OperationsService {
    async fn get_operation(
        &self,
        request: Request<GetOperationRequest>,
    ) -> Result<Response<Operation>, Status> {
        let describe = |request: &GetOperationRequest| Body::Named(request.name.clone());
        self.front
            .unary(
                Method::GetOperation,
                request,
                describe,
                |core, _, request| {
                    core.tasks
                        .operation(&request.name)
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_in_every_unit() {
        assert_eq!(timeout("30S"), Some(Duration::from_secs(30)));
        assert_eq!(timeout("30001m"), Some(Duration::from_millis(30_001)));
        assert_eq!(timeout("1M"), Some(Duration::from_secs(60)));
        assert_eq!(timeout("1H"), Some(Duration::from_secs(3600)));
        assert_eq!(timeout("7u"), Some(Duration::from_micros(7)));
        assert_eq!(timeout("7n"), Some(Duration::from_nanos(7)));
        for bad in ["", "S", "30", "30s", "-1S"] {
            assert_eq!(timeout(bad), None, "{bad}");
        }
    }
}
