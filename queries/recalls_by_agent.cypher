// name: recalls_by_agent
// purpose: recalls by agent: how many, how many were judged, and how many had a good outcome
// parameter: project STRING = '': a project's name; '' for all projects
// column: agent STRING
// column: recalls INT64
// column: judged INT64: recalls with a good or bad outcome
// column: helped INT64: recalls with a good outcome
// column: share DOUBLE: helped divided by judged, from 0 to 1; null if none was judged
// column: tokens DOUBLE: average per recall
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
