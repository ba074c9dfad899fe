resource "aws_cloudwatch_metric_alarm" "errors" {
  for_each = local.deployed

  alarm_name          = "${var.name}-${each.key}-errors"
  alarm_description   = "The function ended with an error or ran out of time."
  namespace           = "AWS/Lambda"
  metric_name         = "Errors"
  dimensions          = { FunctionName = aws_lambda_function.function[each.key].function_name }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  threshold           = 0
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topics
  ok_actions          = var.alarm_topics
}

resource "aws_cloudwatch_metric_alarm" "schedule" {
  for_each = aws_cloudwatch_event_rule.schedule

  alarm_name          = "${var.name}-${each.key}-silent"
  alarm_description   = "The schedule did not start the function for a quarter of an hour."
  namespace           = "AWS/Lambda"
  metric_name         = "Invocations"
  dimensions          = { FunctionName = aws_lambda_function.function[each.key].function_name }
  statistic           = "Sum"
  period              = 900
  evaluation_periods  = 1
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  alarm_actions       = var.alarm_topics
  ok_actions          = var.alarm_topics
}

locals {
  # The objective of the probe is that 99.9 % of the runs of a month succeed. While the probe is off, no run fails.
  probe_objective = {
    fast = { seconds = 3600, above = 1, why = "The probe failed twice in an hour: at this rate, a month's share of failures is used up in a day." }
    slow = { seconds = 21600, above = 2, why = "The probe failed three times in six hours: at this rate, a month's share of failures is used up in four days." }
  }
}

resource "aws_cloudwatch_metric_alarm" "probe_objective" {
  for_each = local.probe_objective

  alarm_name          = "${var.name}-probe-${each.key}"
  alarm_description   = each.value.why
  namespace           = "AWS/Lambda"
  metric_name         = "Errors"
  dimensions          = { FunctionName = aws_lambda_function.function["probecredentials"].function_name }
  statistic           = "Sum"
  period              = each.value.seconds
  evaluation_periods  = 1
  threshold           = each.value.above
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topics
  ok_actions          = var.alarm_topics
}

resource "aws_cloudwatch_metric_alarm" "gateway" {
  alarm_name          = "${var.name}-gateway-5xx"
  alarm_description   = "More than one percent of the requests were answered with 5xx."
  namespace           = "AWS/ApiGateway"
  metric_name         = "5xx"
  dimensions          = { ApiId = aws_apigatewayv2_api.api.id }
  statistic           = "Average"
  period              = 60
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  threshold           = 0.01
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topics
  ok_actions          = var.alarm_topics
}

locals {
  # Above these limits the server will soon refuse writes, uses up its one processor, or has lost its replicas.
  redis_limits = {
    DatabaseMemoryUsagePercentage = { above = 75, why = "More than three quarters of the Redis memory are in use." }
    EngineCPUUtilization          = { above = 80, why = "The one thread that runs commands is busy." }
    Evictions                     = { above = 0, why = "The Redis evicts keys: its policy is not noeviction." }
    ReplicationLag                = { above = 5, why = "A replica is more than five seconds behind." }
  }

  redis_alarms = {
    for pair in setproduct(range(1, var.redis_nodes + 1), keys(local.redis_limits)) :
    format("%03d-%s", pair[0], pair[1]) => { node = format("%s-%03d", var.name, pair[0]), metric = pair[1] }
  }
}

resource "aws_cloudwatch_metric_alarm" "redis" {
  for_each = local.redis_alarms

  alarm_name          = "${var.name}-redis-${each.key}"
  alarm_description   = local.redis_limits[each.value.metric].why
  namespace           = "AWS/ElastiCache"
  metric_name         = each.value.metric
  dimensions          = { CacheClusterId = each.value.node }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  threshold           = local.redis_limits[each.value.metric].above
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topics
  ok_actions          = var.alarm_topics
}
