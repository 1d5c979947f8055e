// name: recalls_by_agent
// purpose: who asks, how often, and how it ends: recalls, how many were judged, how many went well
// parameter: project STRING = '': a project's name; '' for all
// column: agent STRING
// column: recalls INT64
// column: judged INT64: recalls that ended well or badly
// column: helped INT64: recalls that ended well
// column: share DOUBLE: helped of judged, from 0 to 1; null where none was
// column: tokens DOUBLE: of a recall, on average
// column: last_at TIMESTAMP
// example: memgraph query recalls_by_agent --param project=shop
MATCH (r:Recall)
WHERE $project = '' OR r.project_id = $project
WITH r.agent_name AS agent, count(*) AS recalls,
     count(CASE WHEN r.outcome IN ['positive', 'success', 'love', 'like', 'negative', 'failure', 'meh'] THEN 1 END) AS judged,
     count(CASE WHEN r.outcome IN ['positive', 'success', 'love', 'like'] THEN 1 END) AS helped,
     avg(r.total_tokens) AS tokens, max(r.retrieved_at) AS last_at
RETURN agent, recalls, judged, helped,
       CASE WHEN judged > 0 THEN round(CAST(helped AS DOUBLE) / judged, 3) END AS share, round(tokens, 1) AS tokens, last_at
ORDER BY recalls DESC, agent
