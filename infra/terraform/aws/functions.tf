locals {
  # Generated from the catalog: the next apply deploys functions that were added to it.
  functions = jsondecode(file("${path.module}/../functions.json"))

  # A function answers either buffered, for the HTTP API, which cannot stream, or streaming, behind its own URL.
  buffered = { for name, f in local.functions : name => merge(f, { program = name, concurrency = -1, environment = { PLATFORM_WATCH_WINDOW = var.watch_window } }) }
  streamed = {
    for name, f in local.functions : "${name}Stream" => merge(f, {
      program        = name
      timeoutSeconds = 900
      concurrency    = var.stream_concurrency
      environment    = { PLATFORM_STREAM = "true", PLATFORM_WATCH_WINDOW = "14m" }
    }) if f.stream
  }
  deployed = merge(local.buffered, local.streamed)

  # The permissions that Lambda needs to put a function into a network. They must be granted for all resources.
  network_actions = [
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
  ]

  lambda_arn = "arn:${data.aws_partition.current.partition}:lambda:${var.region}:${data.aws_caller_identity.current.account_id}"
}

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

resource "aws_cloudwatch_log_group" "function" {
  for_each = local.deployed

  name              = "/aws/lambda/${var.name}-${each.key}"
  retention_in_days = var.log_retention_days
}

data "aws_iam_policy_document" "assume" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["lambda.amazonaws.com"]
    }
  }
}

data "aws_iam_policy_document" "function" {
  for_each = local.deployed

  statement {
    sid       = "WriteOwnLog"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.function[each.key].arn}:*"]
  }

  statement {
    sid     = "ReadSecrets"
    actions = ["secretsmanager:GetSecretValue"]
    resources = concat(
      [aws_secretsmanager_secret.redis_url.arn],
      var.audit_store_secret_arn == "" ? [] : [var.audit_store_secret_arn],
      each.value.encrypts ? [aws_secretsmanager_secret.encryption_key.arn] : [],
    )
  }

  statement {
    sid       = "JoinNetwork"
    actions   = local.network_actions
    resources = ["*"]
  }

  statement {
    sid       = "NotFromCode"
    effect    = "Deny"
    actions   = local.network_actions
    resources = ["*"]

    condition {
      test     = "ArnEquals"
      variable = "lambda:SourceFunctionArn"
      values   = ["${local.lambda_arn}:function:${var.name}-${each.key}"]
    }
  }
}

resource "aws_iam_role" "function" {
  for_each = local.deployed

  name               = "${var.name}-${each.key}"
  assume_role_policy = data.aws_iam_policy_document.assume.json
}

resource "aws_iam_role_policy" "function" {
  for_each = local.deployed

  name   = "own"
  role   = aws_iam_role.function[each.key].id
  policy = data.aws_iam_policy_document.function[each.key].json
}

resource "aws_lambda_function" "function" {
  for_each = local.deployed

  function_name    = "${var.name}-${each.key}"
  role             = aws_iam_role.function[each.key].arn
  runtime          = "provided.al2023"
  handler          = "bootstrap"
  architectures    = [var.architecture == "arm64" ? "arm64" : "x86_64"]
  filename         = "${var.build}/${each.value.program}/${var.architecture}/bootstrap.zip"
  source_code_hash = filebase64sha256("${var.build}/${each.value.program}/${var.architecture}/bootstrap.zip")
  timeout          = each.value.timeoutSeconds
  memory_size      = each.value.memoryMB
  layers           = [var.secrets_layer_arn]

  # A URL has no other throttle, and each watch holds an instance until it ends: without a bound, the watches of one access
  # key could take all instances of the account, and then no function answers. The gateway throttles the other functions; -1
  # reserves nothing.
  reserved_concurrent_executions = each.value.concurrency

  environment {
    variables = merge({
      PLATFORM_REDIS_URL_SECRET = aws_secretsmanager_secret.redis_url.arn
      PLATFORM_LOG_LEVEL        = var.log_level
      PLATFORM_METRICS          = var.metrics
      PLATFORM_VERSION          = var.release
      PLATFORM_ISSUER           = "${aws_apigatewayv2_api.api.api_endpoint}/kubernetes/management"
    }, each.value.encrypts ? { PLATFORM_ENCRYPTION_KEY_SECRET = aws_secretsmanager_secret.encryption_key.arn } : {}, var.audit_store_secret_arn == "" ? {} : { PLATFORM_SECRET_AUDIT_STORE_SECRET = var.audit_store_secret_arn }, each.value.environment)
  }

  vpc_config {
    subnet_ids         = aws_subnet.private[*].id
    security_group_ids = [aws_security_group.functions.id]
  }

  depends_on = [aws_iam_role_policy.function, aws_secretsmanager_secret_version.redis_url]
}

# A function URL needs no AWS credential: callers have an access key of the platform, which the function checks.
resource "aws_lambda_function_url" "stream" {
  for_each = local.streamed

  function_name      = aws_lambda_function.function[each.key].function_name
  authorization_type = "NONE"
  invoke_mode        = "RESPONSE_STREAM"
}

resource "aws_lambda_permission" "stream" {
  for_each = local.streamed

  statement_id           = "url"
  action                 = "lambda:InvokeFunctionUrl"
  function_name          = aws_lambda_function.function[each.key].function_name
  principal              = "*"
  function_url_auth_type = "NONE"
}

resource "aws_lambda_permission" "stream_invoke" {
  for_each = local.streamed

  statement_id             = "url-invoke"
  action                   = "lambda:InvokeFunction"
  function_name            = aws_lambda_function.function[each.key].function_name
  principal                = "*"
  invoked_via_function_url = true
}

resource "aws_cloudwatch_event_rule" "schedule" {
  for_each = { for name, f in local.functions : name => f if f.scheduleMinutes > 0 }

  name                = "${var.name}-${each.key}"
  schedule_expression = each.value.scheduleMinutes == 1 ? "rate(1 minute)" : "rate(${each.value.scheduleMinutes} minutes)"
}

resource "aws_cloudwatch_event_target" "schedule" {
  for_each = aws_cloudwatch_event_rule.schedule

  rule = each.value.name
  arn  = aws_lambda_function.function[each.key].arn

  # The next run also does the work of a lost one.
  retry_policy {
    maximum_retry_attempts       = 0
    maximum_event_age_in_seconds = 60
  }
}

# By default Lambda repeats a failed run twice, and keeps an event that it cannot start for six hours.
resource "aws_lambda_function_event_invoke_config" "schedule" {
  for_each = aws_cloudwatch_event_rule.schedule

  function_name                = aws_lambda_function.function[each.key].function_name
  maximum_retry_attempts       = 0
  maximum_event_age_in_seconds = 60
}

resource "aws_lambda_permission" "schedule" {
  for_each = aws_cloudwatch_event_rule.schedule

  statement_id  = "schedule"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.function[each.key].function_name
  principal     = "events.amazonaws.com"
  source_arn    = each.value.arn
}
