//! A server whose history forked (rule P3).

use highwater_postgres::code;

use crate::rig::Rig;
use crate::server::Server;

impl Rig {
    /// Opens the database again after the server was away.
    async fn reconnect(&mut self, server: &Server) {
        self.db = server.client(&self.database).await;
    }
}

#[tokio::test]
async fn a_history_is_followed_and_a_fork_before_the_position_is_refused() {
    let server = Server::start();
    let mut rig = Rig::on(&server, "create table t(id int primary key)").await;
    rig.stream("insert into t values(1)").await;
    rig.task.take().unwrap().stop().await;

    // What a copy of this moment does not have is delivered.
    server.command("pause");
    server.command("save");
    server.command("resume");
    rig.reconnect(&server).await;
    rig.stream("insert into t values(2)").await;
    rig.task.take().unwrap().stop().await;

    // The same server on a new timeline, which began behind the position.
    server.command("pause");
    server.command("promote");
    rig.reconnect(&server).await;
    assert_eq!(rig.stream("insert into t values(3)").await, [r#"c +{"id":3}"#]);
    rig.task.take().unwrap().stop().await;
    let followed = rig.stored.last().unwrap();
    assert_eq!(followed.number("timeline"), Some(2));

    // The copy becomes the server, on a timeline of its own.
    server.command("pause");
    server.command("swap");
    server.command("promote");
    rig.reconnect(&server).await;
    let on_the_first = rig
        .stored
        .0
        .lock()
        .unwrap()
        .iter()
        .rev()
        .find(|o| o.number("timeline") == Some(1))
        .cloned();
    rig.stored.put(on_the_first.unwrap());
    let refusal = rig.refused().await;
    assert_eq!(refusal.code, code::TIMELINE, "{refusal}");
}
