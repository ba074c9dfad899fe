'use strict';

// A stack has at most 500 resources. The packager lets the HTTP API call each function by a permission of its own: one
// resource for each function. Here one role, GatewayRole in roles.json, does it for all of them: every integration names
// the role, and these permissions are taken out of the stack. Permissions of schedules and URLs remain.
const role = { 'Fn::GetAtt': ['GatewayRole', 'Arn'] };

module.exports = class Gateway {
  constructor(serverless) {
    this.hooks = {
      'after:package:compileEvents': () => {
        const resources = serverless.service.provider.compiledCloudFormationTemplate.Resources;
        for (const [name, { Type: type, Properties: properties }] of Object.entries(resources)) {
          if (type === 'AWS::ApiGatewayV2::Integration') {
            properties.CredentialsArn = role;
          } else if (type === 'AWS::Lambda::Permission' && properties.Principal === 'apigateway.amazonaws.com') {
            delete resources[name];
          }
        }
      },
    };
  }
};
